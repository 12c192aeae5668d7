package store

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/format"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/durability"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/v1"
)

// Bounds of the outputs that are kept of a tenant, in bytes and in number; the oldest
// go first.
const (
	maxOutputBytes = 256 << 20
	maxOutputs     = 100_000
)

// headerCut marks an output of which the beginning is left out.
const headerCut = "Osu-Cut"

// outputs are the streams of outputs, one for each tenant, with one message for each
// step of a host in a run.
type outputs struct {
	js      jetstream.JetStream
	mu      sync.Mutex
	streams map[string]jetstream.Stream
}

func outputSubject(tenant, key string, run uint64, step string) string {
	return strings.Join([]string{"osu-output", tenant, strconv.FormatUint(run, 10), key, step}, ".")
}

// stream opens the stream of a tenant, and makes it when it is missing.
func (o *outputs) stream(ctx context.Context, tenant string) (jetstream.Stream, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if s := o.streams[tenant]; s != nil {
		return s, nil
	}
	s, err := o.js.CreateOrUpdateStream(ctx, durability.Stream(jetstream.StreamConfig{
		Name: "osu-output-" + tenant, Description: "the output of the steps of tenant " + tenant, Subjects: []string{"osu-output." + tenant + ".*.*.*"},
		Retention: jetstream.LimitsPolicy, Discard: jetstream.DiscardOld, MaxMsgsPerSubject: 1,
		MaxBytes: maxOutputBytes, MaxMsgs: maxOutputs, AllowDirect: true,
	}))
	if err != nil {
		return nil, fmt.Errorf("cannot open the outputs of tenant %s: %w", tenant, err)
	}
	o.streams[tenant] = s
	return s, nil
}

// PutOutput keeps what a step has printed, in place of what it had printed before; key
// is the host's name as one subject token. What is there already is not written again,
// what is damaged is replaced.
func (s *Store) PutOutput(ctx context.Context, tenant, key string, o message.Output) error {
	kept, found, err := s.output(ctx, tenant, key, o.Run, o.Step)
	if err != nil && !errors.Is(err, ErrDamaged) || found && err == nil && kept.Output == string(o.Text) && kept.Cut == o.Cut {
		return err
	}
	msg := nats.NewMsg(outputSubject(tenant, key, o.Run, o.Step))
	msg.Header.Set(format.Header, format.Output.HeaderValue())
	if o.Cut {
		msg.Header.Set(headerCut, "true")
	}
	var packed bytes.Buffer
	writer := gzip.NewWriter(&packed)
	if _, err := writer.Write(o.Text); err != nil {
		return err
	}
	if err := writer.Close(); err != nil {
		return err
	}
	msg.Data = packed.Bytes()
	if _, err := s.outputs.js.PublishMsg(ctx, msg); err != nil {
		return fmt.Errorf("cannot keep the output of %s of host %s: %w", o.Step, key, err)
	}
	return nil
}

// Outputs returns what the steps of a host have printed in a run, in their order.
func (s *Store) Outputs(ctx context.Context, tenant, key string, run uint64) ([]v1.StepOutput, error) {
	all := []v1.StepOutput{}
	for _, step := range message.OutputSteps() {
		o, found, err := s.output(ctx, tenant, key, run, step)
		if err != nil {
			return nil, err
		}
		if found {
			all = append(all, o)
		}
	}
	return all, nil
}

// output returns what a step has printed; false when nothing is kept.
func (s *Store) output(ctx context.Context, tenant, key string, run uint64, step string) (v1.StepOutput, bool, error) {
	stream, err := s.outputs.stream(ctx, tenant)
	if err != nil {
		return v1.StepOutput{}, false, err
	}
	msg, err := stream.GetLastMsgForSubject(ctx, outputSubject(tenant, key, run, step))
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return v1.StepOutput{}, false, nil
	}
	var text []byte
	if err == nil {
		err = format.Output.CheckHeader(msg.Header.Get(format.Header))
	}
	if err == nil {
		text, err = unpackOutput(msg.Data)
	}
	if err != nil {
		return v1.StepOutput{}, false, fmt.Errorf("cannot read the output of %s of host %s in run %d: %w", step, key, run, err)
	}
	return v1.StepOutput{Step: step, At: msg.Time, Cut: msg.Header.Get(headerCut) != "", Output: string(text)}, true, nil
}

// planStep is where the plan of a host stands, beside the outputs of its steps.
const planStep = "plan"

// PutPlan keeps what a run will change on a host, in place of an earlier plan. What is there
// already is not written again.
func (s *Store) PutPlan(ctx context.Context, tenant, key string, run uint64, packed []byte) error {
	kept, found, err := s.plan(ctx, tenant, key, run)
	if err == nil && found && bytes.Equal(kept.Data, packed) {
		return nil
	}
	if err != nil {
		return err
	}
	msg := nats.NewMsg(outputSubject(tenant, key, run, planStep))
	msg.Header.Set(format.Header, format.Plan.HeaderValue())
	msg.Data = packed
	if _, err := s.outputs.js.PublishMsg(ctx, msg); err != nil {
		return fmt.Errorf("cannot keep the plan of host %s: %w", key, err)
	}
	return nil
}

// plan returns the message with a plan; false when none is kept.
func (s *Store) plan(ctx context.Context, tenant, key string, run uint64) (*jetstream.RawStreamMsg, bool, error) {
	stream, err := s.outputs.stream(ctx, tenant)
	if err != nil {
		return nil, false, err
	}
	msg, err := stream.GetLastMsgForSubject(ctx, outputSubject(tenant, key, run, planStep))
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return nil, false, nil
	}
	if err == nil {
		err = format.Plan.CheckHeader(msg.Header.Get(format.Header))
	}
	if err != nil {
		return nil, false, fmt.Errorf("cannot read the plan of host %s in run %d: %w", key, run, err)
	}
	return msg, true, nil
}

// Plan returns what a run changes on a host. Without a plan that is kept it is
// ErrNotFound.
func (s *Store) Plan(ctx context.Context, tenant, key string, run uint64) (v1.HostPlan, error) {
	msg, found, err := s.plan(ctx, tenant, key, run)
	if err != nil {
		return v1.HostPlan{}, err
	}
	if !found {
		return v1.HostPlan{}, fmt.Errorf("the plan of host %s in run %d %w", key, run, ErrNotFound)
	}
	shown, err := shownPlan(msg)
	if err != nil {
		return v1.HostPlan{}, fmt.Errorf("the plan of host %s in run %d %w: %w", key, run, ErrDamaged, err)
	}
	return shown, nil
}

// shownPlan returns the plan in a message as the API shows it.
func shownPlan(msg *jetstream.RawStreamMsg) (v1.HostPlan, error) {
	plan, err := message.UnpackPlan(msg.Data)
	if err != nil {
		return v1.HostPlan{}, err
	}
	shown := v1.HostPlan{At: msg.Time, Changes: make([]v1.VersionChange, 0, len(plan.Changes)), DownloadBytes: plan.Download, Reboot: plan.Reboot}
	for _, c := range plan.Changes {
		shown.Changes = append(shown.Changes, v1.VersionChange{Package: c.Name, From: c.From, To: c.To})
	}
	for _, h := range plan.Held {
		shown.Held = append(shown.Held, v1.HeldPackage{Package: h.Name, Version: h.Version, Offered: h.Offered, Reason: h.Reason})
	}
	return shown, nil
}

func unpackOutput(packed []byte) ([]byte, error) {
	reader, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, fmt.Errorf("it %w: %w", ErrDamaged, err)
	}
	text, err := io.ReadAll(io.LimitReader(reader, message.MaxOutput))
	if err != nil {
		return nil, fmt.Errorf("it %w: %w", ErrDamaged, err)
	}
	return text, nil
}
