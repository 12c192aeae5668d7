package release

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestOrder(t *testing.T) {
	t.Parallel()
	for scheme, ordered := range map[Scheme][]string{
		Semver: {"1.9.4", "2.0.0-rc1", "2.0", "2.0.1", "2.10.0", "10.0.0"},
		Deb:    {"1.0~rc1", "1.0", "1.0-1", "1.0-1+b1", "1:0.1"},
		RPM:    {"1.0~rc1-1", "1.0-1", "1.0-1.el9", "1:0.1-1"},
	} {
		for i, a := range ordered {
			for j, b := range ordered {
				if order, known := Order(scheme, a, b); !known || order < 0 != (i < j) || order > 0 != (i > j) {
					t.Errorf("%s: %s and %s: %d, %v", scheme, a, b, order, known)
				}
			}
		}
	}
	for _, row := range []struct {
		scheme Scheme
		a, b   string
		known  bool
	}{{Opaque, "a", "a", true}, {Opaque, "a", "b", false}, {Semver, "two", "2.0", false}, {Semver, "two", "two", true}} {
		if order, known := Order(row.scheme, row.a, row.b); order != 0 || known != row.known {
			t.Errorf("%+v: %d, %v", row, order, known)
		}
	}
}

func TestRange(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		scheme        Scheme
		text, version string
		want          bool
	}{
		{Semver, ">= 2.0, < 2.1", "2.0.7", true},
		{Semver, ">= 2.0, < 2.1", "2.1.0", false},
		{Semver, ">= 2.0, < 2.1", "2.1.0-rc1", true},
		{Semver, "2.0", "2.0.0", true},
		{Semver, ">= 2.0", "unknown", false},
		{Semver, "!= 2.0", "unknown", true},
		{Deb, ">= 6.12, < 6.13", "6.12.38+deb13-amd64", true},
		{Deb, ">= 6.12, < 6.13", "6.13", false},
		{Deb, ">=6.12", "6.12", true},
		{Deb, "> 6.12", "6.12", false},
		{Deb, "<= 6.12", "6.12", true},
		{Deb, "!= 6.12", "6.12", false},
		{Deb, "= 6.12", "6.12", true},
		{Deb, "6.12", "6.12.0", false},
		{Deb, ">= 1.0-2", "1.0+b1", true}, // As dpkg has it: the revision counts last.
		{RPM, "< 1.0-1", "1.0~rc1-1", true},
		{Opaque, "= spring", "spring", true},
		{Opaque, "spring", "autumn", false},
		{Opaque, "!=spring", "autumn", true},
	} {
		r, err := ParseRange(row.scheme, row.text)
		if err != nil || r.Fits(row.version) != row.want {
			t.Errorf("%+v: %v, %v", row, r.Fits(row.version), err)
		}
	}
	for _, wrong := range []string{"", ">=", "6.12,", "6 12", "=> 6", "~> 6.12 >"} {
		for _, scheme := range []Scheme{Semver, Deb, RPM, Opaque} {
			if r, err := ParseRange(scheme, wrong); err == nil {
				t.Errorf("%q is read as %v", wrong, r)
			}
		}
	}
}

// TestRangesAgree checks that of two opposite ranges a version that the scheme orders is in exactly one.
func TestRangesAgree(t *testing.T) {
	t.Parallel()
	version := rapid.StringMatching(`[0-9]{1,2}(\.[0-9]{1,2}){0,3}(-[a-z0-9]{1,3})?`)
	rapid.Check(t, func(t *rapid.T) {
		scheme := rapid.SampledFrom([]Scheme{Semver, Deb, RPM}).Draw(t, "scheme")
		bound, v := version.Draw(t, "bound"), version.Draw(t, "version")
		in := func(operator string) bool {
			r, err := ParseRange(scheme, operator+bound)
			if err != nil {
				t.Skip("not a version of this scheme")
			}
			return r.Fits(v)
		}
		if _, ordered := Order(scheme, v, bound); !ordered {
			t.Skip("not ordered")
		}
		for _, pair := range [][2]string{{">=", "<"}, {"<=", ">"}, {"=", "!="}} {
			if in(pair[0]) == in(pair[1]) {
				t.Errorf("%s is in both or none of %s%s and %s%s", v, pair[0], bound, pair[1], bound)
			}
		}
	})
}

// FuzzParseRange: a range is refused, or a version is in it or not.
func FuzzParseRange(f *testing.F) {
	f.Add(">= 2.0, < 2.1", "2.0.7")
	f.Add("spring", "autumn")
	f.Fuzz(func(t *testing.T, text, version string) {
		for _, scheme := range []Scheme{Semver, Deb, RPM, Opaque} {
			r, err := ParseRange(scheme, text)
			if err != nil {
				continue
			}
			fits := r.Fits(version)
			parts := strings.Split(text, ",")
			slices.Reverse(parts)
			if again, err := ParseRange(scheme, strings.Join(parts, ",")); err != nil || again.Fits(version) != fits {
				t.Errorf("%q of %s: %v, and %v, %v the other way round", version, text, fits, again.Fits(version), err)
			}
		}
	})
}

func TestMisfit(t *testing.T) {
	t.Parallel()
	appliance := Release{Version: "2.1.0", Scheme: Semver, From: []string{">= 2.0, < 2.1", "= 1.9.4"}, Installs: map[string]string{"appliance": "2.1.0", "kernel": "6.1.1"}}
	requires := Release{Requires: map[string]string{"kernel": ">= 6.1", "kubernetes": ">= 1.29"}}
	back := Release{Version: "2.1.0", Scheme: Semver, Downgrade: true, Installs: map[string]string{"appliance": "2.1.0"}}
	never := back
	never.Downgrade = false
	for _, row := range []struct {
		name     string
		release  Release
		reported map[string]string
		want     string
	}{
		{"any", Release{}, nil, ""},
		{"within", appliance, map[string]string{"appliance": "2.0.3"}, ""},
		{"the exact one", appliance, map[string]string{"appliance": "1.9.4"}, ""},
		{"too old", appliance, map[string]string{"appliance": "1.9.3"}, "its appliance is 1.9.3; the release is for >= 2.0, < 2.1 or = 1.9.4"},
		{"unknown", appliance, map[string]string{"kernel": "6.1"}, "it reports no version of appliance; the release is for >= 2.0, < 2.1 or = 1.9.4"},
		{"required", requires, map[string]string{"kernel": "6.1.0", "kubernetes": "1.30.1"}, ""},
		{"too old a kernel", requires, map[string]string{"kernel": "5.10", "kubernetes": "1.30.1"}, "its kernel is 5.10; the release requires >= 6.1"},
		{"no kubernetes", requires, map[string]string{"kernel": "6.1.0"}, "it reports no version of kubernetes; the release requires >= 1.29"},
		{"a downgrade that is meant", back, map[string]string{"appliance": "2.2.0"}, ""},
		{"a downgrade", never, map[string]string{"appliance": "2.2.0"}, "its appliance is 2.2.0, which is newer than 2.1.0; the release is not for downgrades"},
		{"the same", never, map[string]string{"appliance": "2.1.0"}, ""},
		{"over a major version", back, map[string]string{"appliance": "3.0.0"}, "its appliance is 3.0.0; a downgrade to 2.1.0 goes over a major version"},
		{"of the distribution", Release{Scheme: Deb, From: []string{">= 12"}}, map[string]string{"os": "debian 11.9"}, "its os is 11.9; the release is for >= 12"},
		{"of the image", Release{Scheme: Deb, From: []string{">= 12"}}, map[string]string{"os": "debian 11.9", "os-image": "shop 12.1"}, ""},
	} {
		if got := row.release.Misfit(row.reported); got != row.want {
			t.Errorf("%s: got %q, want %q", row.name, got, row.want)
		}
	}
}

func TestLacking(t *testing.T) {
	t.Parallel()
	r := Release{Installs: map[string]string{"appliance": "2.1.0", "kernel": "6.1.1", "libc": "2.41"}}
	if got := r.Lacking(map[string]string{"appliance": "2.1.0", "kernel": "6.1"}); !slices.Equal(got, []string{"kernel", "libc"}) {
		t.Errorf("got %v", got)
	}
	if got := r.Lacking(r.Installs); len(got) > 0 {
		t.Errorf("got %v", got)
	}
}
