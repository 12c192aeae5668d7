package debversion_test

import (
	"fmt"
	"math/rand/v2"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/debversion"
)

func TestCompare(t *testing.T) {
	t.Parallel()
	ordered := []string{
		"0~~", "0~", "0", "1.0~rc1", "1.0-0~1", "1.0", "1.0-1", "1.0-1+b1", "1.0-1+deb12u2", "1.0-1+deb12u11", "1.0a", "1.0+dfsg", "1.0.1",
		"1.2", "1.10", "1.10-1", "2", "1:0.1", "1:1", "10:0",
	}
	for i, a := range ordered {
		for j, b := range ordered {
			if got := debversion.Compare(a, b); got < 0 != (i < j) || got > 0 != (i > j) {
				t.Errorf("comparing %s to %s returns %d", a, b, got)
			}
		}
	}
	// Those of other systems.
	for _, list := range [][]string{
		{"1.0~~", "1.0~~a", "1.0~", "1.0", "1.0-1", "1.0a", "1.0b", "1.0+b1", "1.0.1", "1.1", "1.9", "1.10", "2", "1:0.1"},
		{"6.1.0-13-amd64", "6.12.9-amd64", "6.12.38+deb13-amd64", "6.13"},
		{"6.12.9-100.fc41", "6.12.9-101.fc41", "6.12.10-100.fc41"},
		{"20260101", "20260102T1200", "20260102T1300"},
	} {
		if !slices.IsSortedFunc(list, debversion.Compare) {
			t.Errorf("%v are in another order", list)
		}
	}
	if debversion.Compare("1.0", "0:1.0") != 0 || debversion.Compare("1.01", "1.1") != 0 || debversion.Compare("1.0-0", "1.0") != 0 {
		t.Error("an epoch of 0, leading zeros and a revision of 0 change nothing")
	}
}

// TestCompare_asDpkgDoes compares random versions as this machine's dpkg does.
func TestCompare_asDpkgDoes(t *testing.T) {
	t.Parallel()
	dpkg, err := exec.LookPath("dpkg")
	if err != nil {
		t.Skip("needs dpkg")
	}
	const letters = "0019ab~~+..-"
	rng := rand.New(rand.NewPCG(1, 2))
	random := func() string {
		version := []byte{'0' + byte(rng.IntN(3))}
		for range rng.IntN(7) {
			version = append(version, letters[rng.IntN(len(letters))])
		}
		if rng.IntN(5) == 0 {
			return "1:" + string(version)
		}
		return string(version)
	}
	var script strings.Builder
	type pair struct{ a, b string }
	var pairs []pair
	for range 500 {
		a, b := random(), random()
		if strings.HasSuffix(a, "-") || strings.HasSuffix(b, "-") { // dpkg warns of an empty revision.
			continue
		}
		pairs = append(pairs, pair{a, b})
		fmt.Fprintf(&script, "if %[1]s --compare-versions '%[2]s' lt '%[3]s'; then echo -1; elif %[1]s --compare-versions '%[2]s' gt '%[3]s'; then echo 1; else echo 0; fi\n", dpkg, a, b)
	}
	out, err := exec.CommandContext(t.Context(), "sh", "-c", script.String()).Output()
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range strings.Fields(string(out)) {
		got := debversion.Compare(pairs[i].a, pairs[i].b)
		if sign := fmt.Sprint(min(1, max(-1, got))); sign != want {
			t.Errorf("comparing %s to %s returns %s, and dpkg says %s", pairs[i].a, pairs[i].b, sign, want)
		}
	}
}

// FuzzCompare holds that the order is one: antisymmetric, and equal to itself.
func FuzzCompare(f *testing.F) {
	f.Add("1.0-1", "1.0-1+deb12u1")
	f.Add("1:0~", "0")
	f.Fuzz(func(t *testing.T, a, b string) {
		x, y := debversion.Compare(a, b), debversion.Compare(b, a)
		if x > 0 != (y < 0) || x < 0 != (y > 0) || debversion.Compare(a, a) != 0 {
			t.Fatalf("%q and %q: %d and %d", a, b, x, y)
		}
	})
}
