package store

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// breaking is a bucket whose watches end after their first entry, as they do
// when the store is gone.
type breaking struct{ jetstream.KeyValue }

func (breaking) Watch(context.Context, string, ...jetstream.WatchOpt) (jetstream.KeyWatcher, error) {
	updates := make(chan jetstream.KeyValueEntry, 1)
	updates <- host{}
	close(updates)
	return ended{updates: updates}, nil
}

type ended struct {
	jetstream.KeyWatcher
	updates chan jetstream.KeyValueEntry
}

func (e ended) Updates() <-chan jetstream.KeyValueEntry { return e.updates }
func (ended) Stop() error                               { return nil }

type host struct{ jetstream.KeyValueEntry }

func (host) Value() []byte { return []byte(`{"format":1,"name":"h01"}`) }

// TestBrokenWatch checks that a list which breaks off is an error: half of the
// hosts would be taken for all.
func TestBrokenWatch(t *testing.T) {
	t.Parallel()
	s := &Store{hosts: divide(nil, breaking{})}
	if hosts, err := s.Hosts(t.Context(), "acme"); !errors.Is(err, errWatchEnded) {
		t.Errorf("the hosts are %+v, %v", hosts, err)
	}
}

// TestShortTexts checks that the text of a host is cut between characters: half a
// one would be kept as another.
func TestShortTexts(t *testing.T) {
	t.Parallel()
	run := v1.Run{Hosts: []v1.RunHost{{Error: "x" + strings.Repeat("å", cutText)}}}
	withShortTexts(&run)
	if got := run.Hosts[0].Error; got != "x"+strings.Repeat("å", (cutText-1)/2) {
		t.Errorf("it is %q", got)
	}
}
