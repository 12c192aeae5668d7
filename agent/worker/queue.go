package worker

import (
	"context"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wait"
)

// commandQueue keeps the newest prepare and the newest command to the host until
// the loop has time for them. Older ones are of no use.
type commandQueue struct {
	*wait.Queue[message.Kind, message.Record]
}

func newCommandQueue() commandQueue {
	return commandQueue{wait.NewQueue[message.Kind, message.Record]()}
}

// put keeps a record unless one that is as new is kept already.
func (q commandQueue) put(r message.Record) (keeps bool) {
	q.Change(r.Kind, func(kept *message.Record) {
		// Sequences of two logs do not compare; what is delivered last counts.
		if keeps = r.Log != kept.Log || r.Seq > kept.Seq; keeps {
			*kept = r
		}
	})
	return keeps
}

// take returns the oldest record that is kept, and waits for one.
func (q commandQueue) take(ctx context.Context) (message.Record, error) {
	if err := q.Wait(ctx); err != nil {
		return message.Record{}, err
	}
	items := q.Items()
	oldest := items[0]
	for _, item := range items[1:] {
		if item.Value.Seq < oldest.Value.Seq {
			oldest = item
		}
	}
	q.Done(oldest)
	return oldest.Value, nil
}
