// How many CPUs this process may use.
#pragma once

namespace bpls {

// The CPUs of the calling thread's affinity, but no more than the quota of the process's control groups allows, rounded up. At
// least one.
int usable_cpus() noexcept;

// The CPUs that control groups allow, a fraction or infinity: `groups` has the form of /proc/self/cgroup, `root` is the folder
// that the groups are mounted in. Infinity where there are no such groups.
double cpu_quota(const char* groups, const char* root) noexcept;

}  // namespace bpls
