package message_test

import (
	"bytes"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// TestPlanIsChecked checks that a plan says what it changes, within its bounds, and that
// an error names what is wrong and what would be right.
func TestPlanIsChecked(t *testing.T) {
	t.Parallel()
	change := func(c message.Change) message.ChangeSet { return message.ChangeSet{Changes: []message.Change{c}} }
	held := func(h message.HeldPackage) message.ChangeSet {
		return message.ChangeSet{Held: []message.HeldPackage{h}}
	}
	for name, row := range map[string]struct {
		plan message.ChangeSet
		want string
	}{
		"nothing":              {message.ChangeSet{}, ""},
		"new":                  {change(message.Change{Name: "nginx", To: "1.24"}), ""},
		"removed":              {change(message.Change{Name: "nginx", From: "1.24"}), ""},
		"changed":              {change(message.Change{Name: "nginx", From: "1.22", To: "1.24"}), ""},
		"no name":              {change(message.Change{To: "1"}), "change 1: it has no name"},
		"no version":           {change(message.Change{Name: "a"}), `change 1: "a" has neither from nor to; name the version before`},
		"no change":            {change(message.Change{Name: "a", From: "1", To: "1"}), `change 1: "a" stays at "1"; a change has two versions`},
		"control character":    {change(message.Change{Name: "a", To: "1\x1b[2J"}), `change 1: its to "1\x1b[2J" is not plain text`},
		"not UTF-8":            {change(message.Change{Name: "a\xff", To: "1"}), "is not plain text: use UTF-8"},
		"long name":            {change(message.Change{Name: strings.Repeat("a", message.MaxPlanName+1), To: "1"}), "its name has 513 bytes; at most 512"},
		"twice":                {message.ChangeSet{Changes: []message.Change{{Name: "a", To: "1"}, {Name: "a", To: "2"}}}, `change 2: "a" follows "a"; sort the changes by name, each name once`},
		"unsorted":             {message.ChangeSet{Changes: []message.Change{{Name: "b", To: "1"}, {Name: "a", To: "2"}}}, `change 2: "a" follows "b"`},
		"many":                 {message.ChangeSet{Changes: make([]message.Change, message.MaxChanges+1)}, "it has 10001 changes; at most 10000"},
		"many held":            {message.ChangeSet{Held: make([]message.HeldPackage, message.MaxChanges+1)}, "it holds 10001 back; at most 10000"},
		"held":                 {held(message.HeldPackage{Name: "a", Reason: "held by apt-mark"}), ""},
		"held without a cause": {held(message.HeldPackage{Name: "a"}), `held 1: "a" has no reason; say why it stays`},
		"held without a name":  {held(message.HeldPackage{Reason: "b"}), "held 1: it has no name"},
		"negative download":    {message.ChangeSet{Download: -1}, "its download-bytes are -1; use 0 or more"},
		"long reboot":          {message.ChangeSet{Reboot: strings.Repeat("a", message.MaxText+1)}, "its reboot has 4097 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := row.plan.Check()
			if row.want == "" && err != nil || row.want != "" && (err == nil || !strings.Contains(err.Error(), row.want)) {
				t.Errorf("the error is %v, not %q", err, row.want)
			}
		})
	}
}

// TestLargePlanTravels checks that a plan of 3,000 packages is read back whole, and that
// the bound of its body holds one of MaxChanges with names and versions as they are.
func TestLargePlanTravels(t *testing.T) {
	t.Parallel()
	for _, n := range []int{3000, message.MaxChanges} {
		var want message.ChangeSet
		for i := range n {
			want.Changes = append(want.Changes, message.Change{
				Name: fmt.Sprintf("lib-of-a-package-with-a-name-%05d:amd64", i), From: "1:2.36.1-9+deb12u4", To: "1:2.36.1-9+deb12u10~bpo12+1",
			})
		}
		got, err := message.DecodePlan(message.EncodePlan(want))
		if err != nil || !reflect.DeepEqual(got.Changes, want.Changes) {
			t.Errorf("%d changes are read back as %d: %v", n, len(got.Changes), err)
		}
	}
	if _, err := message.DecodePlan(make([]byte, message.MaxPlanBody+1)); err == nil || !strings.Contains(err.Error(), "at most") {
		t.Errorf("a body that is too large: %v", err)
	}
}

// TestUnpackAfterDamage checks that a plan is read whole after packed plans that are
// damaged: what reads them is used again.
func TestUnpackAfterDamage(t *testing.T) {
	t.Parallel()
	want := message.ChangeSet{Changes: []message.Change{{Name: "kernel", From: "6.1", To: "6.2"}}}
	packed, err := message.PackPlan(want)
	if err != nil {
		t.Fatal(err)
	}
	flipped := bytes.Clone(packed)
	flipped[len(flipped)/2] ^= 0x55
	for name, damaged := range map[string][]byte{"nothing": nil, "no gzip": []byte("a plan"), "cut off": packed[:len(packed)-5], "flipped": flipped} {
		if got, err := message.UnpackPlan(damaged); err == nil {
			t.Errorf("%s: it is read as %+v", name, got)
		}
		if got, err := message.UnpackPlan(packed); err != nil || !reflect.DeepEqual(got.Changes, want.Changes) {
			t.Errorf("after %s, a plan is read as %+v, %v", name, got, err)
		}
	}
}

// TestWithhold checks that a plan holds back what was rolled back, and nothing else.
func TestWithhold(t *testing.T) {
	t.Parallel()
	plan := message.ChangeSet{Changes: []message.Change{{Name: "a", From: "1", To: "2"}, {Name: "b", From: "1", To: "2"}}, Held: []message.HeldPackage{{Name: "z", Reason: "held"}}}
	got := plan.Withhold(message.Rejected{"b": {"2"}, "a": {"3"}, "c": {"2", "4"}}, "rolled back on Sunday")
	want := message.ChangeSet{
		Changes: []message.Change{{Name: "a", From: "1", To: "2"}},
		Held:    []message.HeldPackage{{Name: "b", Version: "1", Offered: "2", Reason: "rolled back on Sunday"}, {Name: "z", Reason: "held"}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("it is %+v, not %+v", got, want)
	}
	if len(plan.Changes) != 2 || len(plan.Held) != 1 {
		t.Errorf("the plan itself has changed: %+v", plan)
	}
}

// TestClasses checks that each class is read, no other is, and which failures pass.
func TestClasses(t *testing.T) {
	t.Parallel()
	for _, c := range message.Classes() {
		if got, err := message.ParseClass(string(c)); got != c || err != nil {
			t.Errorf("%s reads as %s, %v", c, got, err)
		}
		if want := c == "lock" || c == "transient"; c.Passes() != want {
			t.Errorf("%s passes: %v", c, c.Passes())
		}
	}
	for _, s := range []string{"", "Lock", "other"} {
		if _, err := message.ParseClass(s); err == nil || !strings.Contains(err.Error(), "use one of transient, artifact, space") {
			t.Errorf("%q: %v", s, err)
		}
	}
}
