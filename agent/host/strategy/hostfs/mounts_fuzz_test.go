package hostfs

import (
	"fmt"
	"strings"
	"testing"
)

// FuzzParseMounts checks that whatever the kernel lists is a list of mounts or an error, and
// that a mount is read back with the path that it was listed with.
func FuzzParseMounts(f *testing.F) {
	f.Add("22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw,errors=remount-ro\n")
	f.Add("40 22 0:35 / /mnt/with\\040blank ro - nfs4 server:/export ro\n41 22 0:36 / /x rw - tmpfs tmpfs\n")
	f.Add("22 1 8:1 / /\\999 rw - ext4\n")
	f.Add("\\")
	f.Add("data\u00a0disk")
	f.Fuzz(func(t *testing.T, info string) {
		mounts, err := parseMounts(info)
		if lines := strings.Count(strings.TrimSuffix(info, "\n"), "\n") + 1; err == nil && info != "" && len(mounts) != lines {
			t.Errorf("%d mounts of %d lines", len(mounts), lines)
		}
		// The kernel escapes these alone, so a path may have any other blank.
		path := "/" + strings.NewReplacer(`\`, `\134`, " ", `\040`, "\t", `\011`, "\n", `\012`).Replace(info)
		mounts, err = parseMounts(fmt.Sprintf("22 1 8:1 / %s rw - ext4 /dev/sda1 rw\n", path))
		if err != nil || len(mounts) != 1 || mounts[0].path != "/"+info {
			t.Errorf("/%q is read as %+v, %v", info, mounts, err)
		}
	})
}
