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

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/packed"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/text"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/durability"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/format"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

const (
	// maxHistory bounds the ended runs of one tenant, in bytes; the oldest go
	// first.
	maxHistory = 256 << 20
	// maxKeptRun bounds one of them as it is kept, in bytes: less than the
	// largest message of the server.
	maxKeptRun = 3 << 20
	// maxReadRun bounds one as it is read, in bytes, so that a damaged one
	// cannot fill the memory.
	maxReadRun = 256 << 20
	// cutText is what is left of the text of each host and event of a run that
	// is too large otherwise, in bytes.
	cutText = 100
)

// headerSummary holds a run without its hosts and events, so that a list does
// not unpack what it does not show.
const headerSummary = "Osu-Summary"

// headerAsOf holds the sequence of the last record of the log that a run as it
// is kept takes in.
const headerAsOf = "Osu-As-Of"

// maxTries bounds how often a run is compared with what others keep of it at the
// same time.
const maxTries = 5

// runs are the streams of ended runs, one for each tenant.
type runs struct {
	js      jetstream.JetStream
	mu      sync.Mutex
	streams map[string]jetstream.Stream
}

func runSubject(tenant string, id uint64) string {
	return "osu-runs." + tenant + "." + strconv.FormatUint(id, 10)
}

// stream opens the stream of a tenant, and makes it when it is missing.
func (r *runs) stream(ctx context.Context, tenant string) (jetstream.Stream, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s := r.streams[tenant]; s != nil {
		return s, nil
	}
	s, err := durability.Open(ctx, r.js, jetstream.StreamConfig{
		Name: "osu-runs-" + tenant, Description: "the ended runs of tenant " + tenant, Subjects: []string{"osu-runs." + tenant + ".*"},
		Retention: jetstream.LimitsPolicy, Discard: jetstream.DiscardOld, MaxBytes: maxHistory, AllowDirect: true,
	})
	if err != nil {
		return nil, fmt.Errorf("cannot open the history of tenant %s: %w", tenant, err)
	}
	r.streams[tenant] = s
	return s, nil
}

// PutRun keeps an ended run as it is as of a record of the log. One that is kept
// already is replaced by a later state of it alone, whoever comes first: hosts
// may answer, be released or deleted after its end.
func (s *Store) PutRun(ctx context.Context, tenant string, run v1.Run, asOf uint64) error {
	err := s.writeRun(ctx, tenant, run, asOf, 0)
	for range maxTries {
		if !wrongRevision(err) {
			return err
		}
		kept, readErr := s.readRun(ctx, tenant, run.ID)
		if readErr != nil {
			return fmt.Errorf("cannot keep run %d of tenant %s anew: %w", run.ID, tenant, readErr)
		}
		if newer, wrong := kept.olderThan(asOf); wrong != nil || !newer {
			return wrong
		}
		err = s.writeRun(ctx, tenant, run, asOf, kept.Sequence)
	}
	return err
}

// keptRun is a run as the stream has it.
type keptRun struct{ *jetstream.RawStreamMsg }

// olderThan reports whether what is kept of a run is of before a record of the
// log.
func (k keptRun) olderThan(asOf uint64) (bool, error) {
	kept, err := strconv.ParseUint(k.Header.Get(headerAsOf), 10, 64)
	if err != nil {
		return false, fmt.Errorf("it is damaged: header %s: %w", headerAsOf, err)
	}
	return kept < asOf, nil
}

// writeRun keeps a run if what is kept of it has a number, 0 for nothing.
func (s *Store) writeRun(ctx context.Context, tenant string, run v1.Run, asOf, base uint64) error {
	if _, err := s.runs.stream(ctx, tenant); err != nil {
		return err
	}
	msg := nats.NewMsg(runSubject(tenant, run.ID))
	summary := run
	summary.Hosts, summary.Events, summary.Release = nil, nil, summary.Release.WithoutText()
	header, err := json.Marshal(summary)
	if err != nil {
		return err
	}
	msg.Header.Set(headerSummary, string(header))
	msg.Header.Set(headerAsOf, strconv.FormatUint(asOf, 10))
	msg.Header.Set(format.Header, format.Run.HeaderValue())
	if msg.Data, err = pack(run); err != nil {
		return err
	}
	if _, err = s.runs.js.PublishMsg(ctx, msg, jetstream.WithExpectLastSequencePerSubject(base)); err != nil {
		return fmt.Errorf("cannot keep run %d of tenant %s: %w", run.ID, tenant, err)
	}
	return nil
}

// keptBody is the body of a run: what the API shows of it, and what a rollback of it needs.
type keptBody struct {
	v1.Run
	Pinned *v1.PinnedRun `json:"pinned,omitempty"`
}

// MarshalRun returns a run as it is kept.
func MarshalRun(run v1.Run) ([]byte, error) { return json.Marshal(keptBody{run, run.Pinned}) }

// UnmarshalRun is the reverse of MarshalRun.
func UnmarshalRun(body []byte) (v1.Run, error) {
	var kept keptBody
	if err := json.Unmarshal(body, &kept); err != nil {
		return v1.Run{}, err
	}
	kept.Run.Pinned = kept.Pinned
	return kept.Run, nil
}

// pack makes the body of a run. One that is too large loses its events, then
// most of the text of each host.
func pack(run v1.Run) ([]byte, error) {
	for _, shorten := range []func(*v1.Run){func(*v1.Run) {}, withoutEvents, withShortTexts} {
		shorten(&run)
		body, err := MarshalRun(run)
		if err != nil {
			return nil, err
		}
		kept, err := packed.Fast.Pack(body)
		if err != nil {
			return nil, err
		}
		if len(kept) <= maxKeptRun {
			return kept, nil
		}
	}
	return nil, fmt.Errorf("run %d is too large to be kept", run.ID)
}

func withoutEvents(run *v1.Run) { run.Events = nil }

func withShortTexts(run *v1.Run) {
	hosts := make([]v1.RunHost, len(run.Hosts))
	for i, h := range run.Hosts {
		for _, long := range []*string{&h.Error, &h.Note, &h.SlotReason, &h.Progress} {
			*long = text.Cut(*long, cutText, "")
		}
		hosts[i] = h
	}
	run.Hosts = hosts
}

// Run returns a run that is kept, or ErrNotFound.
func (s *Store) Run(ctx context.Context, tenant string, id uint64) (v1.Run, error) {
	kept, err := s.readRun(ctx, tenant, id)
	if err != nil {
		return v1.Run{}, fmt.Errorf("cannot read run %d of tenant %s: %w", id, tenant, err)
	}
	run, err := unpack(kept.Data)
	if err != nil {
		return v1.Run{}, fmt.Errorf("cannot read run %d of tenant %s: %w", id, tenant, err)
	}
	return run, nil
}

func (s *Store) readRun(ctx context.Context, tenant string, id uint64) (keptRun, error) {
	stream, err := s.runs.stream(ctx, tenant)
	if err != nil {
		return keptRun{}, err
	}
	msg, err := stream.GetLastMsgForSubject(ctx, runSubject(tenant, id))
	switch {
	case errors.Is(err, jetstream.ErrMsgNotFound):
		return keptRun{}, ErrNotFound
	case err != nil:
		return keptRun{}, err
	}
	return keptRun{msg}, format.Run.CheckHeader(msg.Header.Get(format.Header))
}

// unpack is the reverse of pack.
func unpack(kept []byte) (run v1.Run, err error) {
	body, err := packed.Unpack(kept, maxReadRun)
	if err != nil {
		return run, fmt.Errorf("it is damaged: %w", err)
	}
	if run, err = UnmarshalRun(body); err != nil {
		return run, fmt.Errorf("it is damaged: %w", err)
	}
	return run, nil
}

// Runs delivers the runs that are kept of a tenant, the one kept last first,
// without their hosts and events, until deliver says that it has enough. One
// that was kept anew comes twice, as it is now first.
func (s *Store) Runs(ctx context.Context, tenant string, deliver func(v1.Run) (more bool)) error {
	stream, err := s.runs.stream(ctx, tenant)
	if err != nil {
		return err
	}
	info, err := stream.Info(ctx)
	if err != nil {
		return fmt.Errorf("cannot list the runs of tenant %s: %w", tenant, err)
	}
	// On a full disk the server may call a record the last one that it could not
	// write (Log.Last).
	for left := info.State.Msgs; left > 0; left-- {
		seq := info.State.FirstSeq + left - 1
		msg, err := stream.GetMsg(ctx, seq)
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			return nil // The oldest went while this was read.
		}
		if err != nil {
			return fmt.Errorf("cannot list the runs of tenant %s: %w", tenant, err)
		}
		if err := format.Run.CheckHeader(msg.Header.Get(format.Header)); err != nil {
			return fmt.Errorf("cannot read record %d of the history of tenant %s: %w", seq, tenant, err)
		}
		var run v1.Run
		if err := json.Unmarshal([]byte(msg.Header.Get(headerSummary)), &run); err != nil {
			return fmt.Errorf("record %d of the history of tenant %s is damaged: %w", seq, tenant, err)
		}
		if !deliver(run) {
			return nil
		}
	}
	return nil
}
