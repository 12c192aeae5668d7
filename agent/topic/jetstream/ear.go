package jetstream

import (
	"context"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/topic"
)

// Listen implements topic.Ear. What cannot be read is dropped: it counts for
// nothing, and the next heartbeat comes soon.
func (l *Log) Listen(ctx context.Context, alive func(string, message.Alive), progress func(string, message.Progress)) error {
	heartbeats, err := l.nats.Subscribe(l.subjects.Alive("*"), func(msg *nats.Msg) {
		host, known := teller(msg.Subject)
		if a, err := message.DecodeAlive(msg.Data); err == nil && known {
			alive(host, a)
		}
	})
	if err != nil {
		return fmt.Errorf("cannot listen for heartbeats: %w", err)
	}
	work, err := l.nats.Subscribe(l.subjects.Progress("*"), func(msg *nats.Msg) {
		host, known := teller(msg.Subject)
		if p, err := message.DecodeProgress(msg.Data); err == nil && known {
			progress(host, p)
		}
	})
	if err != nil {
		return fmt.Errorf("cannot listen for progress: %w", err)
	}
	if err := l.nats.Publish(l.subjects.Ask(), nil); err != nil {
		return fmt.Errorf("cannot ask for heartbeats: %w", err)
	}
	<-ctx.Done()
	_, _ = heartbeats.Unsubscribe(), work.Unsubscribe()
	return ctx.Err()
}

// teller returns the host whose subject it is.
func teller(subject string) (string, bool) {
	host, ok := topic.Host(strings.Split(subject, ".")[2])
	return host, ok && message.ValidHost(host)
}
