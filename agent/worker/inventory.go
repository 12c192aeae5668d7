package worker

import (
	"context"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/inventory"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/throttle"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wait"
)

// Inventory reads what the machine of this host consists of (package hardware).
type Inventory interface {
	Read() (inventory.Inventory, error)
	// Watch calls changed when it has begun, and whenever Read may return something else
	// than before, until ctx ends or the watch fails. changed does not block for long.
	Watch(ctx context.Context, changed func()) error
}

// sendInventory tells the site what the machine consists of: when that has changed, and the
// same again after a day. Nothing depends on it.
func (w *Worker) sendInventory(ctx context.Context) error {
	if w.Inventory == nil {
		return nil
	}
	const what = "the inventory"
	told, err := w.lastTold(ctx, what, w.HostLog.LastInventory)
	if err != nil {
		return err
	}
	known, failed := telling{told: told, most: message.MaxInventoryBytes}, ""
	for {
		body, err := w.readInventory()
		if text := failureText(err); text != failed {
			if failed = text; err != nil {
				w.warn(ctx, "cannot read "+what, err)
			}
		}
		if err == nil {
			if known, err = w.tell(ctx, known, body, what, w.HostLog.Inventory); err != nil {
				return err
			}
		}
		if err := w.nextInventory(ctx); err != nil {
			return err
		}
	}
}

func (w *Worker) readInventory() ([]byte, error) {
	found, err := w.Inventory.Read()
	if err != nil {
		return nil, err
	}
	return found.Fit().Encode()
}

// nextInventory waits until the inventory is to be read again: after a change, when the
// machine has had time to settle, or after a day.
func (w *Worker) nextInventory(ctx context.Context) error {
	day := time.NewTimer(message.OfferAgain)
	defer day.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-day.C:
		return nil
	case <-w.inventoryDue:
	}
	// A disk has partitions and an interface several addresses: they come one by one.
	return wait.Sleep(ctx, settleLimit)
}

// watchInventory has the inventory read again when the kernel tells of a change.
func (w *Worker) watchInventory(ctx context.Context) error {
	if w.Inventory == nil {
		return nil
	}
	var failing throttle.Failing
	for {
		err := w.Inventory.Watch(ctx, w.inventoryDue.Set)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if failing.Due(w.Now()) {
			w.Log.Warn("cannot watch for changes of the machine; it is looked at once a day", "host", w.Host, "error", err)
		}
		if err := wait.Sleep(ctx, watchAgain); err != nil {
			return err
		}
	}
}
