package scope

import (
	"context"
	"errors"
	"testing"

	"github.com/godbus/dbus/v5"
)

// TestAwait checks that only the end of its own job counts, and that each way in which a
// scope does not come is told.
func TestAwait(t *testing.T) {
	t.Parallel()
	signal := func(name string, body ...any) *dbus.Signal { return &dbus.Signal{Name: name, Body: body} }
	end := func(job, result string) *dbus.Signal {
		return signal(jobEnded, uint32(7), dbus.ObjectPath(job), "osupgrade-action-1.scope", result)
	}
	for name, row := range map[string]struct {
		signals []*dbus.Signal
		want    string
	}{
		"done":              {[]*dbus.Signal{end("/job/7", "done")}, ""},
		"others before":     {[]*dbus.Signal{end("/job/6", "failed"), signal("org.other.JobRemoved"), signal(jobEnded, "x"), end("/job/7", "done")}, ""},
		"failed":            {[]*dbus.Signal{end("/job/7", "failed")}, "systemd has not started s: failed"},
		"the bus has ended": {nil, "systemd has not started s: the system bus has ended"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			signals := make(chan *dbus.Signal, len(row.signals))
			for _, s := range row.signals {
				signals <- s
			}
			close(signals)
			err := await(t.Context(), signals, "/job/7", "s")
			if row.want == "" && err != nil || row.want != "" && (err == nil || err.Error() != row.want) {
				t.Errorf("the error is %v, not %q", err, row.want)
			}
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := await(ctx, nil, "/job/7", "s"); !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v", err)
	}
}
