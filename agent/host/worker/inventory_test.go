package worker

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/inventory"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/report"
)

// hardware is a machine whose memory a test sets.
type hardware struct {
	mu      sync.Mutex
	memory  int64
	err     error
	reads   int
	changed chan struct{}
}

func newHardware() *hardware { return &hardware{memory: 1 << 30, changed: make(chan struct{}, 1)} }

func (h *hardware) Report() ([]byte, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.reads++
	if h.err != nil {
		return nil, h.err
	}
	return inventory.Inventory{MemoryBytes: h.memory, Machine: inventory.Machine{Vendor: "a\x1b[31m"}}.Fit().Encode()
}

func (h *hardware) Watch(ctx context.Context, changed func()) error {
	for {
		changed()
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-h.changed:
		}
	}
}

func (h *hardware) change(memory int64, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.memory, h.err = memory, err
	select {
	case h.changed <- struct{}{}:
	default:
	}
}

func (h *hardware) readings() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.reads
}

// own runs one worker on a machine while a test plays.
func (r *rig) own(h *hardware, play func()) {
	r.t.Helper()
	r.change = func(o *Options) { o.Sources = []Source{{report.Inventory, h}} }
	ctx, stop := context.WithCancel(r.t.Context())
	defer stop()
	w, err := Open(ctx, r.options())
	if err != nil {
		r.t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	synctest.Wait()
	play()
	stop()
	if err := errors.Join(<-ended, w.Close()); err != nil {
		r.t.Error(err)
	}
}

// TestInventoryIsToldOnce checks that a host tells what its machine consists of once for
// each change, also over a restart, and once a day when it is the same; and that the machine
// is not looked at meanwhile.
func TestInventoryIsToldOnce(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *rig) {
		told := func(want int, when string) {
			r.t.Helper()
			if n := len(r.hostLog.toldInventories()); n != want {
				r.t.Errorf("%s the host has told %d inventories, not %d", when, n, want)
			}
		}
		h := newHardware()
		r.own(h, func() {
			told(1, "at the start")
			time.Sleep(12 * time.Hour)
			told(1, "while nothing changes")
			if n := h.readings(); n != 2 { // At the start, and when the watch has begun.
				r.t.Errorf("in half a day the machine is read %d times", n)
			}
			h.change(2<<30, nil)
			time.Sleep(settleLimit + time.Second)
			told(2, "after a change")
			got, err := inventory.Decode(r.hostLog.toldInventories()[1])
			if err != nil || got.MemoryBytes != 2<<30 || got.Machine.Vendor != "a [31m" {
				r.t.Errorf("it is %+v, %v", got, err)
			}
			h.change(3<<30, errors.New("input/output error"))
			time.Sleep(time.Hour)
			told(2, "while it cannot be read")
			h.change(3<<30, errors.New("input/output error"))
			time.Sleep(time.Hour)
			if n := r.log.lines("level=WARN", "cannot read the inventory"); n != 1 {
				r.t.Errorf("that it cannot be read is told %d times", n)
			}
			h.change(2<<30, nil)
			time.Sleep(time.Hour)
			told(2, "as it was before")
		})
		r.own(h, func() {
			time.Sleep(12 * time.Hour)
			told(2, "after a restart")
			time.Sleep(2 * 24 * time.Hour)
			told(4, "two days later")
		})
	})
}

// TestInventoryOfAnOlderSite checks that a site which knows no inventories is not asked
// again and again, and no person is told.
func TestInventoryOfAnOlderSite(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *rig) {
		r.hostLog.refused["inventory"], r.hostLog.refused["last inventory"] = true, true
		r.own(newHardware(), func() { time.Sleep(time.Hour) })
		if n := r.log.lines("level=WARN", "inventory"); n != 0 || r.hostLog.tried["inventory"] != 1 {
			r.t.Errorf("%d warnings, the inventory is told %d times", n, r.hostLog.tried["inventory"])
		}
	})
}

// TestInventoryThatChangesAlways checks that a machine which changes without end stays within
// the bytes of a day, and says so on the host.
func TestInventoryThatChangesAlways(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *rig) {
		h := newHardware()
		r.own(h, func() {
			for i := range 24 * 60 {
				h.change(int64(i)<<10, nil)
				time.Sleep(time.Minute - time.Second)
			}
			sent := 0
			for _, body := range r.hostLog.toldInventories() {
				sent += len(body)
			}
			if sent > report.Inventory.MaxDay || len(r.hostLog.toldInventories()) < 1000 {
				r.t.Errorf("%d inventories of %d bytes are told in a day", len(r.hostLog.toldInventories()), sent)
			}
		})
		if strings.Contains(r.log.String(), "level=WARN") {
			r.t.Error(r.log.String())
		}
	})
}
