package run

import "testing"

func TestFailures(t *testing.T) {
	t.Parallel()
	f := failures{most: 2}
	if why := f.add("h01", "no space"); why != "" {
		t.Fatalf("1 failure of 2: %s", why)
	}
	f.reset()
	if why := f.add("h02", "no space"); why != "" {
		t.Fatalf("1 failure of 2 since the run was resumed: %s", why)
	}
	if why, want := f.add("h03", "no space"), "2 hosts failed, the last one was h03: no space"; why != want {
		t.Errorf("2 failures of 2: %q, want %q", why, want)
	}
	f.stop("first")
	f.stop("second")
	if why := f.add("h04", "no space"); why != "" || f.halt != "first" {
		t.Errorf("a failure after the run was stopped by %q: %q", f.halt, why)
	}
	one := failures{most: 1}
	if why, want := one.add("h01", "no space"), "host h01 failed: no space"; why != want {
		t.Errorf("1 failure of 1: %q, want %q", why, want)
	}
}
