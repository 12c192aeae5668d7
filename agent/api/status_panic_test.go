package api

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"

	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// faulty is a controller with a fault.
type faulty struct{ Controller }

// Snapshot implements Controller.
func (faulty) Snapshot(context.Context) (v1.Snapshot, error) { panic("no such stage") }

// TestStatusOfFaultyTenant checks that a panic is the trouble of its tenant and ends nothing, and
// that the log has its cause.
func TestStatusOfFaultyTenant(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	s := &server{Options: Options{Log: slog.New(slog.NewTextHandler(&log, nil))}}
	if got := s.statusOf(t.Context(), "acme", faulty{}); got.Tenant != "acme" || !strings.Contains(got.Trouble, "a fault in this program") {
		t.Errorf("the status is %+v", got)
	}
	if !strings.Contains(log.String(), "no such stage") || !strings.Contains(log.String(), "tenant=acme") || !strings.Contains(log.String(), "faulty.Snapshot") {
		t.Errorf("the log has %s", log.String())
	}
}
