package apt

import (
	"path/filepath"
	"strings"
	"testing"
)

// FuzzListings checks that no output of dpkg-query and of apt is read as a package without a
// name, or as less than no bytes.
func FuzzListings(f *testing.F) {
	f.Add("linux\tamd64\tinstall\tinstalled\tok\t6.1-1\t512\n")
	f.Add("Package: a\nVersion: 1\nArchitecture: amd64\nSize: 7\nInstalled-Size: 1\n\nPackage: a\nVersion: 2\n")
	f.Add("'http://mirror/a.deb' a.deb 2305843009213693951 x\n'http://mirror/b.deb' b.deb 2305843009213693951\n'c' c 2305843009213693951\n'd' d 2305843009213693951\n'e' e 7\n")
	f.Add(" 500 http://mirror stable/main amd64 Packages\n     release v=13,o=Debian,a=stable-security,l=Debian-Security\nPinned packages:\n     linux -> 6.1 with priority 990\n")
	f.Add(" /etc/a 0123456789abcdef0123456789abcdef\n /etc/b newconffile obsolete\n")
	f.Add("??5?????? c /etc/a\nmissing     /usr/share/doc/a\nmissing   c /etc/b (Permission denied)\n")
	f.Add("Origin: Debian\nMD5Sum:\n 0123 7 main/Packages\nSHA256:\n 456 7 main/Packages\n 789 8 main/binary-amd64/Packages.xz\n")
	f.Fuzz(func(t *testing.T, printed string) {
		if all, err := parseStatus(printed, "amd64"); err == nil {
			for name, have := range all {
				if name == "" || have.status == "" || have.size < 0 {
					t.Errorf("%q: %+v", name, have)
				}
			}
		}
		for key, a := range parseRecords(printed, "amd64") {
			if strings.HasPrefix(key, "=") || a.size < 0 || a.unpacked < a.size {
				t.Errorf("%q: %+v", key, a)
			}
		}
		for _, one := range parseURIs(printed) {
			if one.size < 0 || one.name == "" || one.name != filepath.Base(one.name) || one.file != "" && one.file != filepath.Clean(one.file) {
				t.Errorf("it is to be fetched: %+v", one)
			}
		}
		for _, path := range parseConffiles(printed) {
			if path == "" {
				t.Error("a file without a name")
			}
		}
		for _, file := range parseVerify(printed, []string{"/usr/share/doc/*"}) {
			if !strings.HasPrefix(file, "/") {
				t.Errorf("%q is not a path", file)
			}
		}
		if sum := parseReleaseSum(printed, "main/Packages"); strings.ContainsAny(sum, " \t\n") || sum != "" && !strings.Contains(printed, "SHA256") {
			t.Errorf("%q is not a sum", sum)
		}
		for _, name := range parseSources(printed).pinned {
			if name == "" {
				t.Error("a pin without a name")
			}
		}
	})
}
