package rpmversion_test

import (
	"testing"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/rpmversion"
)

func TestCompare(t *testing.T) {
	t.Parallel()
	older := [][2]string{
		{"1.0-1", "1.0-2"},
		{"1.9-1", "1.10-1"},
		{"2.0-1", "1:1.0-1"},
		{"1.0~rc1-1", "1.0-1"},
		{"1.0-1", "1.0^git1-1"},
		{"1.0^git1-1", "1.0.1-1"},
		{"1.0a-1", "1.0.1-1"},
		{"1.0-1.el9", "1.0-1.el9_1"},
		{"1.0~~-1", "1.0~-1"},
		{"5.14.0-70.el9", "5.14.0-427.el9"},
	}
	for _, row := range older {
		if rpmversion.Compare(row[0], row[1]) != -1 || rpmversion.Compare(row[1], row[0]) != 1 {
			t.Errorf("%s is not older than %s", row[0], row[1])
		}
	}
	for _, row := range [][2]string{{"1.0-1", "1.0-1"}, {"1.00-1", "1.0-1"}, {"1_0-1", "1.0-1"}, {"0:1-1", "1-1"}} {
		if rpmversion.Compare(row[0], row[1]) != 0 {
			t.Errorf("%s is not equal to %s", row[0], row[1])
		}
	}
}

// FuzzCompare: the order of versions is one.
func FuzzCompare(f *testing.F) {
	f.Add("1.0-1", "1.0~rc1-1", "1:0.9^git-2.el9")
	f.Add("a", "1", "~")
	f.Fuzz(func(t *testing.T, a, b, c string) {
		if rpmversion.Compare(a, a) != 0 || rpmversion.Compare(a, b) != -rpmversion.Compare(b, a) {
			t.Errorf("%q and %q: %d, %d", a, b, rpmversion.Compare(a, b), rpmversion.Compare(b, a))
		}
		if rpmversion.Compare(a, b) < 0 && rpmversion.Compare(b, c) < 0 && rpmversion.Compare(a, c) >= 0 {
			t.Errorf("%q, %q, %q", a, b, c)
		}
	})
}
