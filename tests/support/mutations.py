"""Damage to files: random changes of bytes, and of the values inside a file whose frame is made whole again after.

Rule of this file: everything is drawn from the given random.Random, so that a number names a damaged file.
"""

import io
import json
import zipfile

import numpy as np

from bpls_fast.network.formats import protobuf

EXTREMES = [
    0,
    1,
    127,
    128,
    255,
    2**15,
    2**16 - 1,
    2**31 - 1,
    2**31,
    2**32 - 1,
    2**62,
    2**63,
    2**64 - 1,
]
WORDS = [b"-1", b"0", b"1e999", b"NaN", b"null", b"true", b'""', b"[]", b"{}", b"9" * 19, b"[" * 50]


def bytes_changed(random, data):
    """Change, overwrite, take out, put in, repeat or move some bytes, once or several times."""
    data = bytearray(data)
    for _ in range(random.choice([1, 1, 1, 2, 5])):
        place, length = random.randrange(len(data) + 1), random.choice([1, 1, 2, 4, 8, 40])
        piece = bytes(data[place : place + length])
        kind = random.randrange(7)
        if kind == 0 and piece:
            data[place] ^= 1 << random.randrange(8)
        elif kind == 1:
            size = random.choice([1, 2, 4, 8])
            number = random.choice(EXTREMES) % 256**size
            data[place : place + size] = number.to_bytes(size, "little")
        elif kind == 2:
            del data[place : place + length]
        elif kind == 3:
            data[place:place] = random.randbytes(length)
        elif kind == 4:
            data[place:place] = piece
        elif kind == 5:
            target = random.randrange(len(data) + 1)
            data[target : target + length] = piece
        else:
            data[place : place + random.randrange(3)] = random.choice(WORDS)
    return bytes(data)


def value_changed(random, entry):
    """Change one value somewhere inside lists and objects of JSON: to another one, to none, or twice."""
    if isinstance(entry, (list, dict)) and entry and random.random() < 0.9:
        key = random.choice(range(len(entry)) if isinstance(entry, list) else list(entry))
        kind = random.randrange(8)
        if kind == 0:
            del entry[key]
        elif kind == 1 and isinstance(entry, list):
            entry.insert(key, entry[key])
        elif kind == 1:
            entry[f"{key}0"] = entry[key]
        else:
            entry[key] = value_changed(random, entry[key])
        return entry
    if isinstance(entry, str) and random.random() < 0.7:
        return bytes_changed(random, entry.encode()).decode(errors="replace")
    if isinstance(entry, (int, float)) and random.random() < 0.7:
        return random.choice([entry + 1, entry - 1, -entry, entry * 8, float(entry), str(entry)])
    return random.choice(
        [*EXTREMES, -1, 0.5, 1e308, float("nan"), None, True, "", "a", [], {}, [1, 2]]
    )


def json_changed(random, text):
    if random.random() < 0.5:
        return bytes_changed(random, text)
    return json.dumps(value_changed(random, json.loads(text))).encode()


def npz_changed(random, data):
    """Change one member of an archive; the checksums of the archive are right again."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    name = random.choice(["header.npy", "header.npy", *members])
    if name == "header.npy" and random.random() < 0.8:
        text = np.load(io.BytesIO(members[name])).tobytes()
        changed = io.BytesIO()
        np.save(changed, np.frombuffer(json_changed(random, text), np.uint8))
        members[name] = changed.getvalue()
    else:
        members[name] = bytes_changed(random, members[name])
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for key, content in members.items():
            archive.writestr(key, content)
    return buffer.getvalue()


def safetensors_changed(random, data):
    """Change the header; its length is right again."""
    end = 8 + int.from_bytes(data[:8], "little")
    text = json_changed(random, data[8:end])
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text + data[end:]


def onnx_changed(random, data):
    """Change one field somewhere inside the messages; the lengths of all messages around it are right again."""
    content = [(number, value) for number, _, value in protobuf.fields(memoryview(data))]
    if not content:
        return bytes_changed(random, data)
    place = random.randrange(len(content))
    number, value = content[place]
    kind = random.randrange(12)
    if kind == 0:
        del content[place]
    elif kind == 1:
        content.insert(place, content[place])
    elif kind == 2:
        content.insert(random.randrange(len(content)), content.pop(place))
    elif kind == 3:
        content[place] = (random.choice([1, 2, 3, 4, 5, 8, 9, 13, 14]), value)
    elif isinstance(value, memoryview):
        content[place] = (number, _inside(random, value))
    else:
        content[place] = (
            number,
            random.choice([*EXTREMES, -1, value + 1, 0.5, float("inf"), b"ab"]),
        )
    return protobuf.encode(*((number, _plain(value)) for number, value in content))


def _inside(random, value):
    try:
        return onnx_changed(random, bytes(value))
    except protobuf.UnreadableError:  # it is no message but text or numbers
        return bytes_changed(random, bytes(value))


def _plain(value):
    return bytes(value) if isinstance(value, memoryview) else value
