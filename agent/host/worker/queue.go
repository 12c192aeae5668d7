package worker

import (
	"context"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/wait"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// commandQueue keeps the newest prepare and the newest command to the host until
// the loop takes them. Newer commands replace older ones.
type commandQueue struct {
	*wait.Queue[message.Kind, message.Record]
}

func newCommandQueue() commandQueue {
	return commandQueue{wait.NewQueue[message.Kind, message.Record]()}
}

// put keeps a record unless it already has one that is as new.
func (q commandQueue) put(r message.Record) (keeps bool) {
	q.Change(r.Kind, func(kept *message.Record) {
		// Sequences of two logs do not compare; the later delivery wins.
		if keeps = r.Log != kept.Log || r.Seq > kept.Seq; keeps {
			*kept = r
		}
	})
	return keeps
}

// take waits for records and returns the oldest; false once ctx has ended or other receives.
// Nothing else may receive from other: who does so for a wait that is over takes the signal
// away from the next one.
func (q commandQueue) take(ctx context.Context, other <-chan struct{}) (message.Record, bool) {
	if len(q.Items()) == 0 {
		select {
		case <-ctx.Done():
		case <-other:
		case <-q.Ready():
		}
	}
	items := q.Items()
	if ctx.Err() != nil || len(items) == 0 {
		return message.Record{}, false
	}
	oldest := items[0]
	for _, item := range items[1:] {
		if item.Value.Seq < oldest.Value.Seq {
			oldest = item
		}
	}
	q.Done(oldest)
	return oldest.Value, true
}
