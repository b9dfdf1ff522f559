"""The registry of training methods: what it says of a method is true of its fit function."""

import inspect

import pytest

from bpls_fast.training.methods import DEFAULT_METHOD, METHODS
from tests.support.subprocesses import output_of, run_code


def test_the_default_is_one_of_the_methods():
    assert DEFAULT_METHOD in METHODS
    assert all(name == method.name for name, method in METHODS.items())


@pytest.mark.parametrize("method", METHODS.values(), ids=lambda method: method.name)
def test_the_options_of_a_method_are_arguments_of_its_fit_function(method):
    arguments = inspect.signature(method.fit_labels).parameters
    assert method.max_iter in arguments
    for option in method.options:
        assert option.argument in arguments
        if isinstance(option.values, tuple):
            assert arguments[option.argument].default in option.values


@pytest.mark.parametrize("method", METHODS.values(), ids=lambda method: method.name)
def test_an_option_requires_another_one_of_the_same_method(method):
    values = {option.flag: option.values for option in method.options}
    for option in method.options:
        if option.requires is not None:
            assert option.requires.value in values[option.requires.flag]


def test_the_registry_needs_neither_scikit_learn_nor_a_command_line():
    finished = run_code("""
        import sys
        import bpls_fast.training.methods
        assert not {"sklearn", "argparse"} & set(sys.modules)
    """)
    output_of(finished)
