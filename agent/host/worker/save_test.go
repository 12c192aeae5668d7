package worker

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/durable"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/decide"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// TestDiskFull makes the disk full, faulty or read-only at each write of the journal
// in a run. It checks that no action is taken without its record, that there is one
// alarm, and that the worker continues soon after the disk works again.
func TestDiskFull(t *testing.T) {
	t.Parallel()
	for _, cause := range []error{syscall.ENOSPC, syscall.EDQUOT, syscall.EIO, syscall.EROFS} {
		for write := 1; write <= 3; write++ {
			t.Run(fmt.Sprintf("%v at write %d", cause, write), func(t *testing.T) {
				t.Parallel()
				inBubble(t, func(r *rig) { fullAt(r, cause, write) })
			})
		}
	}
}

// fullAt makes the disk fail for a minute from one write of the journal on.
func fullAt(r *rig, cause error, write int) {
	r.t.Helper()
	writes, well := 0, time.Time{}
	j := prepared()
	// In the bubble's own time.
	j.NotAfter = time.Now().Add(time.Hour)
	r.leave(j)
	r.change = func(o *Options) {
		o.WriteFile = func(path string, data []byte, mode fs.FileMode) error {
			if !strings.HasSuffix(path, "journal.json") {
				return durable.WriteFile(path, data, mode)
			}
			if writes++; writes == write {
				well = time.Now().Add(time.Minute)
			}
			if time.Now().Before(well) {
				// The first record comes before the upgrade, the others after.
				if n := r.effects("upgrade"); n != min(write-1, 1) {
					r.t.Errorf("%d upgrades at write %d", n, write)
				}
				return &os.PathError{Op: "write", Path: path, Err: cause}
			}
			return durable.WriteFile(path, data, mode)
		}
	}
	r.command(11, message.Upgrade)
	r.life(func() bool {
		return r.hostLog.answer(message.Upgrade) == string(message.RebootRequired) && r.journal().Action == message.Upgrade && r.journal().Phase == decide.Answered
	})
	if n := r.effects("upgrade"); n != 1 {
		r.t.Errorf("the host was upgraded %d times", n)
	}
	if late := time.Since(well); well.IsZero() || late > time.Minute {
		r.t.Errorf("it goes on %s after there is space", late)
	}
	if n, m := r.log.lines("level=ERROR", "ALARM: cannot write the journal"), r.log.lines("the journal can be written again"); n != 1 || m != 1 {
		r.t.Errorf("%d alarms and %d ends of it are told:\n%s", n, m, r.log.String())
	}
	told := func(p message.Progress) bool { return p.Run == 10 && strings.HasPrefix(p.Message, "ALARM: ") }
	if !slices.ContainsFunc(r.hostLog.progress, told) {
		r.t.Errorf("the progress tells nothing of it: %+v", r.hostLog.progress)
	}
}

// TestJournalCannotBeWritten checks that a permanent error ends the worker and is
// returned.
func TestJournalCannotBeWritten(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *rig) {
		broken := errors.New("permission denied")
		r.leave(prepared())
		r.now = func() time.Time { return now }
		r.change = func(o *Options) {
			o.WriteFile = func(path string, data []byte, mode fs.FileMode) error {
				if strings.HasSuffix(path, "journal.json") {
					return broken
				}
				return durable.WriteFile(path, data, mode)
			}
		}
		r.command(11, message.Upgrade)
		if err := r.run(); !errors.Is(err, broken) {
			t.Errorf("the worker ends with %v", err)
		}
	})
}
