package realhost

import (
	"slices"
	"testing"
)

// TestControlGroups finds the control group of the tests on the machines that there are.
func TestControlGroups(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name, groups, mounts string
		want                 []string
	}{
		{
			"version 2, in a session", "0::/user.slice/user-0.slice/session-4.scope\n",
			"30 24 0:26 / /sys/fs/cgroup rw,nosuid,nodev,noexec,relatime shared:4 - cgroup2 cgroup2 rw,nsdelegate\n",
			[]string{"/sys/fs/cgroup/user.slice/user-0.slice/session-4.scope"},
		},
		{
			"both versions", "9:name=systemd:/init.scope\n4:memory:/other\n0::/init.scope\n",
			"35 34 0:30 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n36 34 0:31 / /sys/fs/cgroup/systemd rw,relatime - cgroup cgroup rw,xattr,name=systemd\n37 34 0:32 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n",
			[]string{"/sys/fs/cgroup/unified/init.scope", "/sys/fs/cgroup/systemd/init.scope"},
		},
		{
			"in a container that sees a part", "0::/docker/1f/build\n",
			"30 24 0:26 /docker/1f /sys/fs/cgroup rw - cgroup2 cgroup rw\n",
			[]string{"/sys/fs/cgroup/build"},
		},
		{"a part that it is not in", "0::/\n", "30 24 0:26 /docker/1f /sys/fs/cgroup rw - cgroup2 cgroup rw\n", nil},
		{"none", "", "", nil},
	} {
		if got := findGroups(row.groups, row.mounts); !slices.Equal(got, row.want) {
			t.Errorf("%s: %q, want %q", row.name, got, row.want)
		}
	}
}
