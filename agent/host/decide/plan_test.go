package decide

import (
	"reflect"
	"testing"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/formattest"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// TestPlanFormat holds what is written against the fixture of format 1, and reads it.
func TestPlanFormat(t *testing.T) {
	t.Parallel()
	want := KeptPlan{Run: 10, RunAt: later, Plan: message.ChangeSet{
		Changes:  []message.Change{{Name: "kernel", From: "6.1.0", To: "6.1.1"}, {Name: "nginx", To: "1.24"}},
		Held:     []message.HeldPackage{{Name: "libc6", Version: "2.36", Offered: "2.37", Reason: "held by apt-mark"}},
		Download: 1 << 20, Reboot: "the kernel changes",
	}}
	body, err := want.Encode()
	if err != nil {
		t.Fatal(err)
	}
	kept := formattest.Golden(t, "testdata/format1/plan.json", body)
	got, err := DecodePlan(kept)
	if err != nil || !reflect.DeepEqual(got, want) || !got.IsOf(Journal{Run: 10, RunAt: later}) || got.IsOf(Journal{Run: 10, RunAt: now}) {
		t.Errorf("it reads as %+v, %v", got, err)
	}
}
