package worker

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/wait"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/decide"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// Back-off between two tries to write the journal. The longest is far below the
// minute within which a host must work again.
const (
	firstPause   = 100 * time.Millisecond
	longestPause = 5 * time.Second
)

// remember makes a state the one that counts. What of it has changed on disk is written first:
// the boots before the journal, so that no start of the machine is taken for an ordinary one
// whose system is on trial, and what is kept of the run before the run has touched the host.
func (w *Worker) remember(ctx context.Context, next decide.State) error {
	before := w.state
	if !next.Boots.Equal(before.Boots) {
		if err := w.writeState(ctx, bootsFile, next.Boots.Encode); err != nil {
			return err
		}
	}
	if next.Kept != before.Kept {
		kept := decide.Kept{}
		if next.Kept != nil {
			kept = *next.Kept
		}
		if err := w.writeState(ctx, keptFile, kept.Encode); err != nil {
			return err
		}
	}
	if next.Journal != before.Journal || next.Blank != before.Blank {
		if err := w.persist(ctx, "journal", next.Run, func() error { return writeJournal(w.journalPath(), next.Journal, w.WriteFile) }); err != nil {
			return err
		}
	}
	w.take(next)
	if before.Blank && !next.Blank {
		close(w.journaled)
	}
	if before.Log != "" && before.Log != next.Log {
		w.sendAlive() // A site that was restored waits for this host.
	}
	return nil
}

// writeState makes a file beside the journal durable.
func (w *Worker) writeState(ctx context.Context, file string, encode func() ([]byte, error)) error {
	body, err := encode()
	if err != nil {
		return err
	}
	what := strings.TrimSuffix(file, filepath.Ext(file))
	return w.persist(ctx, what, w.state.Run, func() error { return w.WriteFile(filepath.Join(w.Dir, file), body, 0o600) })
}

// take makes a state the one that counts, for the loop and the goroutines beside it.
func (w *Worker) take(s decide.State) {
	w.state = s
	w.written.Store(&s)
}

// persist writes a file of the state directory. While the disk is full, faulty or
// read-only it retries: no action may be taken without its record, and a worker that
// exited would not be there when the disk works again.
func (w *Worker) persist(ctx context.Context, what string, run uint64, write func() error) error {
	w.At("before " + what)
	for pause, alarmed := firstPause, false; ; pause = min(2*pause, longestPause) {
		err := write()
		if err != nil && !temporary(err) {
			return err
		}
		if err == nil {
			if alarmed {
				w.Log.Warn("the "+what+" can be written again", "host", w.Host, "run", run)
			}
			break
		}
		if !alarmed {
			w.alarm(what, run, err)
			alarmed = true
		}
		w.promise(pause)
		if err := wait.Sleep(ctx, pause); err != nil {
			return err
		}
	}
	w.At("after " + what)
	return nil
}

// temporary reports whether the disk may work again later: it is full, has I/O
// errors, or was remounted read-only because of them (ext4's errors=remount-ro).
func temporary(err error) bool {
	of := func(cause error) bool { return errors.Is(err, cause) }
	return slices.ContainsFunc([]error{syscall.ENOSPC, syscall.EDQUOT, syscall.EIO, syscall.EROFS}, of)
}

func (w *Worker) alarm(file string, run uint64, err error) {
	what := "ALARM: cannot write the " + file + "; nothing is done until it can be written"
	w.Log.Error(what, "host", w.Host, "run", run, "error", err)
	w.say(message.Progress{Run: run, Percent: -1, Message: what + ": " + err.Error()})
}

func (w *Worker) journalPath() string { return filepath.Join(w.Dir, journalFile) }
