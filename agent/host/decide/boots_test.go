package decide

import (
	"reflect"
	"strings"
	"testing"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/formattest"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// TestRejectedIsBounded checks that the newest versions are remembered, each once.
func TestRejectedIsBounded(t *testing.T) {
	t.Parallel()
	var b Boots
	for i := range 3 * maxRejected {
		b = b.reject(Rejected{Name: "a", Version: strings.Repeat("1", 1+i/2)})
	}
	if n := len(b.Rejected); n != maxRejected || b.Rejected[n-1].Version != strings.Repeat("1", 3*maxRejected/2) {
		t.Errorf("%d are remembered, the last is %v", n, b.Rejected[n-1])
	}
}

// TestRejectedInTurn checks that a version which was rolled back is held back although
// another version of the same name was rolled back since.
func TestRejectedInTurn(t *testing.T) {
	t.Parallel()
	var b Boots
	for _, version := range []string{"6.1.1", "6.1.2"} {
		b = b.reject(Rejected{Name: "kernel", Version: version, Running: "6.1.0"})
	}
	for version, isHeld := range map[string]bool{"6.1.1": true, "6.1.2": true, "6.1.3": false} {
		plan := message.ChangeSet{Changes: []message.Change{{Name: "kernel", From: "6.1.0", To: version}}}.Withhold(ByName(b.Standing(AcceptedVersions{})), "it was rolled back")
		if len(plan.Held) > 0 != isHeld {
			t.Errorf("%s is held back: %t; the plan is %+v", version, !isHeld, plan)
		}
	}
}

// TestBootsFormat compares what is written with the fixture of format 1, and reads it.
func TestBootsFormat(t *testing.T) {
	t.Parallel()
	want := Boots{Judged: "boot-1", Rejected: []Rejected{{Name: "kernel", Version: "6.1.1", Running: "6.1.0", At: later}}, Trial: &Trial{Versions: []string{"6.1.2"}, Since: later, Until: later, Passed: &PassedTask{Run: 10, Attempt: 1}}}
	body, err := want.Encode()
	if err != nil {
		t.Fatal(err)
	}
	kept := formattest.Golden(t, "testdata/format1/boots.json", body)
	if got, err := DecodeBoots(kept); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("it reads as %+v, %v", got, err)
	}
}
