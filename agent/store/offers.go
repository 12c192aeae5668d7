package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/format"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/text"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/v1"
)

// offers are the plans that hosts offer, one for each host: what an upgrade would change
// if it began now. They are a bucket, so that an entry is deleted with its host.
type offers struct {
	kv     jetstream.KeyValue
	js     jetstream.JetStream
	stream jetstream.Stream
}

const (
	offersBucket = "osu-offers"
	// maxSummaryReboot bounds the reason for a reboot in a summary, in bytes.
	maxSummaryReboot = 200
)

func openOffers(ctx context.Context, js jetstream.JetStream) (o offers, err error) {
	o.js = js
	if o.kv, err = bucket(ctx, js, offersBucket, "plans that hosts offer, by tenant and host", maxBucket); err != nil {
		return o, err
	}
	if o.stream, err = js.Stream(ctx, BucketStream(offersBucket)); err != nil {
		return o, fmt.Errorf("cannot look at the bucket of offers: %w", err)
	}
	return o, nil
}

// offerSubject is the subject of an entry.
func offerSubject(tenant, key string) string {
	return "$KV." + offersBucket + "." + tenant + "." + key
}

// PutOffer keeps what an upgrade of a host would change, in place of an earlier offer; key is
// the host's name as one subject token. A header has the summary, so that those of many hosts
// are read without their plans.
func (s *Store) PutOffer(ctx context.Context, tenant, key string, packed []byte) error {
	plan, err := message.UnpackPlan(packed)
	if err != nil {
		return err
	}
	summary, err := json.Marshal(v1.OfferSummary{
		Changes: len(plan.Changes), Held: len(plan.Held), DownloadBytes: plan.Download, Reboot: text.Fit(plan.Reboot, maxSummaryReboot, "..."),
	})
	if err != nil {
		return err
	}
	msg := nats.NewMsg(offerSubject(tenant, key))
	msg.Header.Set(format.Header, format.Plan.HeaderValue())
	msg.Header.Set(headerSummary, string(summary))
	msg.Data = packed
	if _, err := s.offers.js.PublishMsg(ctx, msg); err != nil {
		return fmt.Errorf("cannot keep the offer of host %s: %w", key, err)
	}
	return nil
}

// Offer returns the packed offer of a host, and when it was kept; nil when there is none.
// What is damaged is returned as it is: another offer replaces it.
func (s *Store) Offer(ctx context.Context, tenant, key string) (packed []byte, at time.Time, err error) {
	msg, err := s.offers.stream.GetLastMsgForSubject(ctx, offerSubject(tenant, key))
	switch {
	case errors.Is(err, jetstream.ErrMsgNotFound):
		return nil, time.Time{}, nil
	case err != nil:
		return nil, time.Time{}, fmt.Errorf("cannot read the offer of host %s: %w", key, err)
	case isDeleted(msg.Header):
		return nil, time.Time{}, nil
	}
	return msg.Data, msg.Time, nil
}

// isDeleted reports whether a message of a bucket says that the entry is deleted.
func isDeleted(h nats.Header) bool { return h.Get("KV-Operation") != "" }

// OfferedPlan returns what an upgrade of a host would change. Without an offer it is
// ErrNotFound.
func (s *Store) OfferedPlan(ctx context.Context, tenant, key string) (v1.HostPlan, error) {
	msg, err := s.offers.stream.GetLastMsgForSubject(ctx, offerSubject(tenant, key))
	if errors.Is(err, jetstream.ErrMsgNotFound) || err == nil && isDeleted(msg.Header) {
		return v1.HostPlan{}, fmt.Errorf("the offer of host %s %w", key, ErrNotFound)
	}
	if err == nil {
		err = format.Plan.CheckHeader(msg.Header.Get(format.Header))
	}
	if err != nil {
		return v1.HostPlan{}, fmt.Errorf("cannot read the offer of host %s: %w", key, err)
	}
	shown, err := shownPlan(msg)
	if err != nil {
		return v1.HostPlan{}, fmt.Errorf("the offer of host %s %w: %w", key, ErrDamaged, err)
	}
	return shown, nil
}

// Offers returns a summary of each offer of a tenant, by the host's name as one subject
// token. It reads no plan. An offer whose summary cannot be read is left out.
func (s *Store) Offers(ctx context.Context, tenant string) (map[string]v1.OfferSummary, error) {
	cannot := func(err error) error { return fmt.Errorf("cannot list the offers of tenant %s: %w", tenant, err) }
	consumer, err := s.offers.stream.OrderedConsumer(ctx, jetstream.OrderedConsumerConfig{
		FilterSubjects: []string{offerSubject(tenant, "*")}, DeliverPolicy: jetstream.DeliverLastPerSubjectPolicy, HeadersOnly: true,
	})
	if err != nil {
		return nil, cannot(err)
	}
	found := map[string]v1.OfferSummary{}
	left := consumer.CachedInfo().NumPending
	if left == 0 {
		return found, nil
	}
	messages, err := consumer.Messages()
	if err != nil {
		return nil, cannot(err)
	}
	defer messages.Stop()
	for left > 0 {
		msg, err := messages.Next(jetstream.NextContext(ctx))
		if err != nil {
			return nil, cannot(err)
		}
		about, err := msg.Metadata()
		if err != nil {
			return nil, cannot(err)
		}
		left = about.NumPending
		var summary v1.OfferSummary
		if isDeleted(msg.Headers()) || format.Plan.CheckHeader(msg.Headers().Get(format.Header)) != nil || json.Unmarshal([]byte(msg.Headers().Get(headerSummary)), &summary) != nil {
			continue
		}
		at := about.Timestamp
		summary.At = &at
		found[strings.TrimPrefix(msg.Subject(), offerSubject(tenant, ""))] = summary
	}
	return found, nil
}
