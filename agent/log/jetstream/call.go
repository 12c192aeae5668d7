package jetstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/log"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
)

const (
	firstPause = 50 * time.Millisecond
	longPause  = 5 * time.Second
)

// ask calls the gate in the name of the worker that has the seat.
func (s *HostLog) ask(ctx context.Context, verb string, body []byte) (answer, error) {
	if err := s.taken(); err != nil {
		return answer{}, fmt.Errorf("%s: %w", verb, err)
	}
	return s.call(ctx, verb, s.worker(), body)
}

// call asks the gate until it answers, refuses, or ctx ends.
func (s *HostLog) call(ctx context.Context, verb, worker string, body []byte) (answer, error) {
	msg := s.message(verb, worker, body)
	for pause := firstPause; ; pause = min(2*pause, longPause) {
		a, err := s.once(ctx, verb, msg)
		if err == nil || errors.Is(err, log.ErrRefused) || errors.Is(err, log.ErrTaken) {
			return a, err
		}
		select {
		case <-ctx.Done():
			return answer{}, errors.Join(ctx.Err(), err)
		case <-time.After(pause/2 + rand.N(pause/2)):
		}
	}
}

func (s *HostLog) message(verb, worker string, body []byte) *nats.Msg {
	msg := nats.NewMsg(s.subjects.Call(s.host, verb))
	msg.Data = body
	msg.Header.Set(headerWorker, worker)
	msg.Header.Set(headerSession, s.session)
	return msg
}

func (s *HostLog) once(ctx context.Context, verb string, call *nats.Msg) (answer, error) {
	// The site does not even look at what is much larger.
	if len(call.Data) > message.MaxVersionsBody {
		return answer{}, fmt.Errorf("%s: %w: %d bytes; at most %d", verb, log.ErrRefused, len(call.Data), message.MaxVersionsBody)
	}
	ctx, cancel := context.WithTimeout(ctx, 2*appendTimeout)
	defer cancel()
	msg, err := s.nats.RequestMsgWithContext(ctx, call)
	switch {
	case errors.Is(err, nats.ErrMaxPayload):
		return answer{}, fmt.Errorf("%s: %w: %w", verb, log.ErrRefused, err)
	case err != nil:
		return answer{}, fmt.Errorf("cannot call %s: %w", verb, err)
	}
	var a answer
	if err := json.Unmarshal(msg.Data, &a); err != nil {
		return answer{}, fmt.Errorf("cannot read the answer to %s: %w", verb, err)
	}
	switch {
	case a.Taken:
		return a, fmt.Errorf("%s: %w: %s", verb, log.ErrTaken, a.Error)
	case a.Refused:
		return a, fmt.Errorf("%s: %w: %s", verb, log.ErrRefused, a.Error)
	case a.Error != "":
		return a, fmt.Errorf("%s failed: %s", verb, a.Error)
	}
	return a, nil
}
