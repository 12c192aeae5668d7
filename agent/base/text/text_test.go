package text

import (
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// TestList checks how names are listed, all of them or only the first.
func TestList(t *testing.T) {
	t.Parallel()
	names := []string{"h01", "h02", "h03"}
	for _, c := range []struct {
		names     []string
		all, most int
		want      string
	}{
		{nil, 0, 2, ""},
		{names[:1], 1, 2, "h01"},
		{names[:2], 2, 2, "h01, h02"},
		{names, 3, 2, "h01, h02 and 1 more"},
		{names[:2], 5, 3, "h01, h02 and 3 more"},
	} {
		if got := ListOf(c.names, c.all, c.most); got != c.want {
			t.Errorf("the first of %d hosts are listed as %q, want %q", c.all, got, c.want)
		}
	}
	if got, want := List(names, 1), "h01 and 2 more"; got != want {
		t.Errorf("they are listed as %q, want %q", got, want)
	}
}

// TestCut checks that a text is cut between characters, and only if it is too
// long.
func TestCut(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		s         string
		limit     int
		cut, fits string
	}{
		{"", 0, "", ""},
		{"abc", 3, "abc", "abc"},
		{"abcdef", 5, "abcde...", "ab..."},
		{"aååå", 4, "aå...", "a..."},
		{"aååå", 5, "aåå...", "a..."},
		{"aååå", 7, "aååå", "aååå"},
		{"abc", 0, "...", "..."},
	} {
		if got := Cut(c.s, c.limit, "..."); got != c.cut {
			t.Errorf("Cut(%q, %d) is %q, not %q", c.s, c.limit, got, c.cut)
		}
		if got := Fit(c.s, c.limit, "..."); got != c.fits {
			t.Errorf("Fit(%q, %d) is %q, not %q", c.s, c.limit, got, c.fits)
		}
	}
	rapid.Check(t, func(rt *rapid.T) {
		s, limit := rapid.String().Draw(rt, "text"), rapid.IntRange(0, 50).Draw(rt, "limit")
		got := Cut(s, limit, "")
		if len(got) > limit || !strings.HasPrefix(s, got) || utf8.ValidString(s) && !utf8.ValidString(got) || len(s) <= limit && got != s {
			rt.Fatalf("%q becomes %q", s, got)
		}
		if fits := Fit(s, limit, "…"); len(fits) > max(limit, len("…")) {
			rt.Fatalf("%q becomes %q", s, fits)
		}
	})
}

// TestFitColumns checks that characters are counted and not bytes.
func TestFitColumns(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		s       string
		columns int
		want    string
	}{
		{"", 0, ""},
		{"åååå", 4, "åååå"},
		{"ååååå", 4, "ååå…"},
		{"abcdef", 4, "abc…"},
		{"abc", 1, "…"},
		{"abc", -1, "…"},
	} {
		if got := FitColumns(c.s, c.columns, "…"); got != c.want {
			t.Errorf("FitColumns(%q, %d) is %q, not %q", c.s, c.columns, got, c.want)
		}
	}
}

// TestCount checks that one thing is named in the singular.
func TestCount(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]string{0: "0 tries", 1: "1 try", 2: "2 tries", 12345: "12345 tries"} {
		if got := Count(n, "try", "tries"); got != want {
			t.Errorf("%d is %q, not %q", n, got, want)
		}
	}
}
