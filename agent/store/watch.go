package store

import (
	"context"
	"errors"

	"github.com/nats-io/nats.go/jetstream"
)

var errWatchEnded = errors.New("the watch has ended")

// watch hands over the entries of some keys as they are now, nil after them,
// and then each that changes, until take has had enough. Its error is that of
// ctx, or that the store is gone.
func watch(ctx context.Context, kv jetstream.KeyValue, keys string, take func(jetstream.KeyValueEntry) (more bool), options ...jetstream.WatchOpt) error {
	watcher, err := kv.Watch(ctx, keys, options...)
	if err != nil {
		return err
	}
	defer func() { _ = watcher.Stop() }()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case entry, open := <-watcher.Updates():
			switch {
			case !open && ctx.Err() != nil:
				return ctx.Err()
			case !open:
				return errWatchEnded
			case !take(entry):
				return nil
			}
		}
	}
}
