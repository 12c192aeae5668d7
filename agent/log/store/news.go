package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/durability"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/format"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// maxNewsBytes bounds the news of a tenant, beside their number.
const maxNewsBytes = 16 << 20

// news are the streams of what was told, one for each tenant: an entry has a subject of
// its own, so that the same news are never there twice.
type news struct {
	js      jetstream.JetStream
	mu      sync.Mutex
	streams map[string]jetstream.Stream
}

// KeptNews are news as they are kept, as of a record of the log.
type KeptNews struct {
	v1.News
	AsOf uint64
}

func (n *news) stream(ctx context.Context, tenant string) (jetstream.Stream, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if s := n.streams[tenant]; s != nil {
		return s, nil
	}
	s, err := durability.Open(ctx, n.js, jetstream.StreamConfig{
		Name: "osu-news-" + tenant, Description: "what was told of tenant " + tenant, Subjects: []string{"osu-news." + tenant + ".*"},
		Retention: jetstream.LimitsPolicy, Discard: jetstream.DiscardOld, MaxMsgs: v1.MaxNews, MaxBytes: maxNewsBytes, AllowDirect: true,
	})
	if err != nil {
		return nil, fmt.Errorf("cannot open the news of tenant %s: %w", tenant, err)
	}
	n.streams[tenant] = s
	return s, nil
}

// PutNews keeps news of a tenant, as of a record of the log, and returns their number: the
// one that they have if they are kept already.
func (s *Store) PutNews(ctx context.Context, tenant string, told v1.News, asOf uint64) (number uint64, err error) {
	stream, err := s.news.stream(ctx, tenant)
	if err != nil {
		return 0, err
	}
	subject := "osu-news." + tenant + "." + told.ID
	msg := nats.NewMsg(subject)
	msg.Header.Set(format.Header, format.News.HeaderValue())
	msg.Header.Set(headerAsOf, strconv.FormatUint(asOf, 10))
	if msg.Data, err = json.Marshal(told); err != nil {
		return 0, err
	}
	ack, err := s.news.js.PublishMsg(ctx, msg, jetstream.WithExpectLastSequencePerSubject(0))
	if wrongRevision(err) {
		kept, readErr := stream.GetLastMsgForSubject(ctx, subject)
		if readErr == nil {
			return kept.Sequence, nil
		}
		err = errors.Join(err, readErr)
	}
	if err != nil {
		return 0, fmt.Errorf("cannot keep news of tenant %s: %w", tenant, err)
	}
	return ack.Sequence, nil
}

// News returns the news of a tenant that are kept, oldest first, but for those that are
// damaged.
func (s *Store) News(ctx context.Context, tenant string) (all []KeptNews, err error) {
	stream, err := s.news.stream(ctx, tenant)
	if err != nil {
		return nil, err
	}
	info, err := stream.Info(ctx)
	if err != nil {
		return nil, fmt.Errorf("cannot read the news of tenant %s: %w", tenant, err)
	}
	for seq := info.State.FirstSeq; info.State.Msgs > 0 && seq <= info.State.LastSeq; seq++ {
		msg, err := stream.GetMsg(ctx, seq)
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			continue // On a full disk the server may count a record that it could not write (Log.Last).
		}
		if err != nil {
			return nil, fmt.Errorf("cannot read the news of tenant %s: %w", tenant, err)
		}
		kept, err := decodeNews(msg)
		if errors.Is(err, ErrDamaged) {
			continue // Nobody can be told it any more.
		}
		if err != nil {
			return nil, fmt.Errorf("cannot read news %d of tenant %s: %w", seq, tenant, err)
		}
		all = append(all, kept)
	}
	return all, nil
}

func decodeNews(msg *jetstream.RawStreamMsg) (kept KeptNews, err error) {
	if err := format.News.CheckHeader(msg.Header.Get(format.Header)); err != nil {
		return kept, err
	}
	if kept.AsOf, err = strconv.ParseUint(msg.Header.Get(headerAsOf), 10, 64); err != nil {
		return kept, fmt.Errorf("%w: header %s: %w", ErrDamaged, headerAsOf, err)
	}
	if err := json.Unmarshal(msg.Data, &kept.News); err != nil {
		return kept, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	kept.Number = msg.Sequence
	return kept, nil
}
