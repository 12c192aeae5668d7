package worker

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"syscall"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wait"
)

// WriteFile replaces a file durably, as durable.WriteFile does.
type WriteFile func(path string, data []byte, mode fs.FileMode) error

// How long a journal that cannot be written rests between two tries. The
// longest is far below the minute in which a host must be well again.
const (
	firstRest = 100 * time.Millisecond
	longRest  = 5 * time.Second
)

// save writes the journal and begins its phase.
func (w *Worker) save(ctx context.Context, next Journal) error {
	if err := w.write(ctx, next); err != nil {
		return err
	}
	w.fresh = true
	return nil
}

// write writes the journal, and waits for a disk that is full, ill or read-only:
// without its record nothing may be done, and a worker that ended would not be
// there when the disk is well.
func (w *Worker) write(ctx context.Context, next Journal) error {
	w.At("before journal")
	for pause, told := firstRest, false; ; pause = min(2*pause, longRest) {
		err := next.write(w.journalPath(), w.WriteFile)
		if err != nil && !passes(err) {
			return err
		}
		if err == nil {
			if told {
				w.Log.Warn("the journal can be written again", "host", w.Host, "run", next.Run)
			}
			break
		}
		if !told {
			w.alarm(next, err)
			told = true
		}
		if err := wait.Sleep(ctx, pause); err != nil {
			return err
		}
	}
	w.At("after journal")
	w.journal = next
	w.tell(next)
	return nil
}

// passes reports whether a disk may be well again without us: it is full, ill,
// or was made read-only for being ill (ext4's errors=remount-ro).
func passes(err error) bool {
	of := func(cause error) bool { return errors.Is(err, cause) }
	return slices.ContainsFunc([]error{syscall.ENOSPC, syscall.EDQUOT, syscall.EIO, syscall.EROFS}, of)
}

func (w *Worker) alarm(next Journal, err error) {
	const what = "ALARM: cannot write the journal; nothing is done until it can be written"
	w.Log.Error(what, "host", w.Host, "run", next.Run, "error", err)
	if err := w.HostLog.Progress(message.Progress{Run: next.Run, Percent: -1, Message: what + ": " + err.Error()}); err != nil {
		w.Log.Debug("cannot send progress", "host", w.Host, "error", err)
	}
}
