// Affinity is asked for on every call, because it may change. The quota is read once: it comes from files.
#include "core/cpus.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <thread>

#if defined(__linux__)
#include <sched.h>

#include <cstdio>
#include <cstring>
#include <memory>
#include <string_view>
#endif

namespace bpls {
namespace {

#if defined(__linux__)

struct Close {
    void operator()(std::FILE* file) const noexcept { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, Close>;

constexpr double unlimited = std::numeric_limits<double>::infinity();

// CPUs by the files of one group: "quota period", or "max period", in version 2; two files in version 1.
double quota_of_group(const char* folder) noexcept {
    char path[8300];
    double quota = 0, period = 0;
    std::snprintf(path, sizeof path, "%s/cpu.max", folder);
    if (const File file{std::fopen(path, "re")})
        return std::fscanf(file.get(), "%lf %lf", &quota, &period) == 2 && quota > 0 && period > 0
                   ? quota / period
                   : unlimited;
    const auto number = [&](const char* name, double& value) noexcept {
        std::snprintf(path, sizeof path, "%s/%s", folder, name);
        const File file{std::fopen(path, "re")};
        return file && std::fscanf(file.get(), "%lf", &value) == 1 && value > 0;
    };
    return number("cpu.cfs_quota_us", quota) && number("cpu.cfs_period_us", period) ? quota / period
                                                                                    : unlimited;
}

// The smallest quota of a group and of those it belongs to.
double quota_below(const char* root, const char* group) noexcept {
    char folder[8200];
    std::snprintf(folder, sizeof folder, "%s%s", root, group);
    double quota = unlimited;
    for (const std::size_t top = std::strlen(root); std::strlen(folder) >= top;) {
        quota = std::min(quota, quota_of_group(folder));
        char* end = std::strrchr(folder, '/');
        if (!end) break;
        *end = '\0';
    }
    return quota;
}

bool lists(std::string_view names, std::string_view wanted) noexcept {
    for (std::size_t end; !names.empty(); names.remove_prefix(std::min(end + 1, names.size())))
        if (end = std::min(names.find(','), names.size()); names.substr(0, end) == wanted)
            return true;
    return false;
}

int cpus_of_affinity() noexcept {
    // As many CPUs as a kernel can be built for.
    constexpr std::size_t most = 8192;
    alignas(cpu_set_t) unsigned char mask[most / 8];
    if (sched_getaffinity(0, sizeof mask, reinterpret_cast<cpu_set_t*>(mask)) != 0)
        return static_cast<int>(std::thread::hardware_concurrency());
    return CPU_COUNT_S(sizeof mask, reinterpret_cast<cpu_set_t*>(mask));
}

#else

int cpus_of_affinity() noexcept { return static_cast<int>(std::thread::hardware_concurrency()); }

#endif

}  // namespace

double cpu_quota([[maybe_unused]] const char* groups, [[maybe_unused]] const char* root) noexcept {
    double smallest = std::numeric_limits<double>::infinity();
#if defined(__linux__)
    // Every line is "number:controllers:path"; version 2 names no controllers.
    const File file{std::fopen(groups, "re")};
    char line[4096], version1[4096];
    std::snprintf(version1, sizeof version1, "%s/cpu", root);
    while (file && std::fgets(line, sizeof line, file.get())) {
        line[std::strcspn(line, "\n")] = '\0';
        char* controllers = std::strchr(line, ':');
        char* path = controllers ? std::strchr(controllers + 1, ':') : nullptr;
        if (!path) continue;
        *path++ = '\0';
        if (*++controllers == '\0')
            smallest = std::min(smallest, quota_below(root, path));
        else if (lists(controllers, "cpu"))
            smallest = std::min(smallest, quota_below(version1, path));
    }
#endif
    return smallest;
}

int usable_cpus() noexcept {
    static const double allowed = std::ceil(cpu_quota("/proc/self/cgroup", "/sys/fs/cgroup"));
    const int cpus = std::max(1, cpus_of_affinity());
    return allowed < cpus ? std::max(1, static_cast<int>(allowed)) : cpus;
}

}  // namespace bpls
