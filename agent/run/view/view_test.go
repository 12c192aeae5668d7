package view

import (
	"testing"
	"time"

	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// TestOptionalTime checks that a time that is left out costs no memory: a list of hosts has tens of
// thousands of them.
func TestOptionalTime(t *testing.T) { //nolint:paralleltest // It counts allocations.
	var zero time.Time
	var host v1.Host
	show := func() { host.LastSeen = OptionalTime(zero) }
	if allocated := testing.AllocsPerRun(100, show); allocated != 0 {
		t.Errorf("a time that is left out takes %v allocations: %+v", allocated, host)
	}
	at := time.Date(2026, 11, 21, 1, 0, 0, 1, time.UTC)
	if got := OptionalTime(at); got == nil || !got.Equal(at.Truncate(time.Second)) || OptionalTime(zero) != nil {
		t.Errorf("%v is shown as %v", at, got)
	}
}
