// Package logtest has the contract of a tenant's log: what its controllers and gates
// rely on. Each implementation of the interfaces runs it in a test, so that what holds
// of the log in memory, on which all other tests run, holds of the real one.
//
// It knows no implementation.
package logtest

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/log"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/gate"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// Log is the log as its controllers and its gates see it.
type Log interface {
	log.Log
	gate.Log
}

// patience bounds the wait for a record that must be delivered.
const patience = 30 * time.Second

// Contract runs all cases. open returns an empty log.
func Contract(t *testing.T, open func(t *testing.T) Log) {
	t.Helper()
	for name, play := range map[string]func(*testedLog){
		"an empty log has nothing":                           empty,
		"of two writers the one that is behind is refused":   oneWriter,
		"a writer may depend on all records":                 dependsOnAll,
		"a controller writes no reply":                       noReply,
		"a host replies once to a command":                   oneAnswer,
		"the newest command and prepare are asked for":       newest,
		"the newest prepare of each environment counts":      newestOfEach,
		"a record is read as it was written":                 readAsWritten,
		"followers get each record in order, old and new":    follow,
		"a gate follows commands and events":                 followCommands,
		"a trimmed log begins later and goes on as before":   trim,
		"the newest command or event cannot be trimmed":      trimTooMuch,
		"a reply that was trimmed is no answer any more":     trimReply,
		"a record that is not there cannot be read":          readTooMuch,
		"the identity of a log stays while it is written to": identity,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			play(&testedLog{T: t, Log: open(t)})
		})
	}
}

// testedLog is a log under test.
type testedLog struct {
	*testing.T
	Log
}

// The records that the cases write.
func prepare() message.Record {
	return message.Record{Kind: message.CommandAll, Checks: true, Release: "spring sha256:" + strings.Repeat("1f", 32), Rollback: "41-57", Body: []byte(`{"action":"prepare"}`)}
}

func prepareOf(environment string) message.Record {
	r := prepare()
	r.Environment = environment
	return r
}

func event(body string) message.Record {
	return message.Record{Kind: message.EventRecord, Run: 1, Body: []byte(body)}
}

func upgrade(host string, epoch uint64) message.Record {
	return message.Record{Kind: message.CommandHost, Run: 1, Host: host, Epoch: epoch, Checks: host == "h02", Body: []byte(`{"action":"upgrade"}`)}
}

func reply(run uint64, action message.Action, host string) message.Record {
	return message.Record{Kind: message.ReplyRecord, Run: run, Action: action, Host: host, Epoch: 3, UpToDate: host == "h01", Outcome: map[string]message.ReplyOutcome{"h02": message.Unknown}[host], Class: map[string]message.Class{"h02": message.Install}[host], Body: []byte(`{"result":"done"}`)}
}

// append appends a record that must be accepted, with a sequence.
func (b *testedLog) append(r message.Record, expect, want uint64) {
	b.Helper()
	if seq, err := b.Append(b.Context(), r, expect); err != nil || seq != want {
		b.Fatalf("after record %d %s is appended as record %d, %v; want %d", expect, r.Body, seq, err, want)
	}
}

// answer appends a reply that must be accepted.
func (b *testedLog) answer(r message.Record) {
	b.Helper()
	if err := b.AppendReply(b.Context(), r); err != nil {
		b.Fatalf("the reply of %s to %s of run %d is refused: %v", r.Host, r.Action, r.Run, err)
	}
}

// ends checks the first and the last sequence.
func (b *testedLog) ends(first, last uint64) {
	b.Helper()
	gotFirst, err := b.First(b.Context())
	gotLast, err2 := b.Last(b.Context())
	if err := errors.Join(err, err2); err != nil || gotFirst != first || gotLast != last {
		b.Errorf("the log has the records %d to %d, %v; want %d to %d", gotFirst, gotLast, err, first, last)
	}
}

// delivered returns the sequences that a follower gets until the last of them.
func (b *testedLog) delivered(follow func(ctx context.Context, deliver func(message.Record)) error, last uint64) string {
	b.Helper()
	ctx, stop := context.WithTimeout(b.Context(), patience)
	defer stop()
	var got []uint64
	if err := follow(ctx, func(r message.Record) {
		if got = append(got, r.Seq); r.Seq == last {
			stop()
		}
	}); !errors.Is(err, context.Canceled) {
		b.Errorf("following ends with %v after %v", err, got)
	}
	return fmt.Sprint(got)
}

func empty(b *testedLog) {
	b.ends(1, 0)
	command, err := b.NewestCommand(b.Context())
	oldest, err2 := b.OldestPrepare(b.Context())
	if command != 0 || oldest != 0 || err != nil || err2 != nil {
		b.Errorf("the newest command is %d, %v, the oldest prepare %d, %v", command, err, oldest, err2)
	}
}

func oneWriter(b *testedLog) {
	b.append(prepare(), 0, 1)
	b.answer(reply(1, message.Prepare, "h01"))
	b.append(event("{}"), 1, 3)
	for _, expect := range []uint64{0, 1, 2, 4} {
		if _, err := b.Append(b.Context(), event("late"), expect); !errors.Is(err, log.ErrBehind) {
			b.Errorf("a writer that expects record %d gets %v", expect, err)
		}
	}
	b.ends(1, 3)
}

func dependsOnAll(b *testedLog) {
	b.append(prepare(), 0, 1)
	b.answer(reply(1, message.Prepare, "h01"))
	for _, wrong := range [][2]uint64{{1, 1}, {1, 3}, {0, 2}} {
		if _, err := b.AppendNext(b.Context(), event("late"), wrong[0], wrong[1]); !errors.Is(err, log.ErrBehind) {
			b.Errorf("a writer that expects the records %v gets %v", wrong, err)
		}
	}
	if seq, err := b.AppendNext(b.Context(), event("{}"), 1, 2); err != nil || seq != 3 {
		b.Errorf("a writer that has seen all gets record %d, %v", seq, err)
	}
}

func noReply(b *testedLog) {
	for what, r := range map[string]message.Record{
		"a reply": reply(1, message.Prepare, "h01"), "a record without a kind": {}, "a command to no host": upgrade("", 0), "a command to two subjects": upgrade("a b", 0),
	} {
		if _, err := b.Append(b.Context(), r, 0); err == nil || errors.Is(err, log.ErrBehind) {
			b.Errorf("%s gets %v", what, err)
		}
	}
	b.ends(1, 0)
}

func oneAnswer(b *testedLog) {
	b.append(prepare(), 0, 1)
	first := reply(1, message.Prepare, "h01")
	b.answer(first)
	second := first
	second.Body, second.Epoch = []byte(`{"result":"failed after all"}`), 4
	if err := b.AppendReply(b.Context(), second); !errors.Is(err, log.ErrAnswered) {
		b.Errorf("the second reply gets %v", err)
	}
	for _, other := range []message.Record{reply(1, message.Upgrade, "h01"), reply(1, message.Prepare, "h02"), reply(2, message.Prepare, "h01")} {
		b.answer(other)
	}
	b.ends(1, 5)
}

func newest(b *testedLog) {
	b.append(prepare(), 0, 1)
	b.append(upgrade("h01", 0), 1, 2)
	b.answer(reply(1, message.Upgrade, "h01"))
	b.append(event("{}"), 2, 4)
	if command, err := b.NewestCommand(b.Context()); err != nil || command != 4 {
		b.Errorf("the newest command or event is %d, %v, not 4", command, err)
	}
	b.oldestPrepare(1)
	b.append(prepare(), 4, 5)
	b.oldestPrepare(5)
}

// newestOfEach prepares runs of three environments, one of whose names is escaped.
func newestOfEach(b *testedLog) {
	b.append(prepareOf("basel"), 0, 1)
	b.append(prepareOf(""), 1, 2)
	b.append(prepareOf("bern-2"), 2, 3)
	b.oldestPrepare(1)
	b.append(prepareOf("basel"), 3, 4)
	b.oldestPrepare(2)
	b.append(prepareOf(""), 4, 5)
	b.oldestPrepare(3)
	b.append(event("{}"), 5, 6)
	if err := b.Trim(b.Context(), 3); err != nil {
		b.Fatal(err)
	}
	b.oldestPrepare(4)
}

// oldestPrepare checks which of the newest prepares of the environments is the oldest.
func (b *testedLog) oldestPrepare(want uint64) {
	b.Helper()
	if oldest, err := b.OldestPrepare(b.Context()); err != nil || oldest != want {
		b.Errorf("the oldest of the newest prepares is %d, %v, not %d", oldest, err, want)
	}
}

func readAsWritten(b *testedLog) {
	begun := time.Now().Add(-time.Minute)
	written := []message.Record{prepare(), prepareOf("basel"), upgrade("h01", 7), event("\x00 no JSON \xff"), reply(1, message.Upgrade, "h01"), reply(1, message.Upgrade, "h02")}
	var command uint64
	for i, r := range written {
		if r.Kind == message.ReplyRecord {
			b.answer(r)
			continue
		}
		b.append(r, command, uint64(i)+1)
		command = uint64(i) + 1
	}
	var read []message.Record
	if err := b.Read(b.Context(), 1, uint64(len(written)), func(r message.Record) { read = append(read, r) }); err != nil {
		b.Fatal(err)
	}
	for i, want := range written {
		got := read[i]
		if got.Time.Before(begun) || i > 0 && got.Time.Before(read[i-1].Time) {
			b.Errorf("record %d was written at %s", got.Seq, got.Time)
		}
		want.Seq, want.Time = uint64(i)+1, got.Time
		if !reflect.DeepEqual(got, want) {
			b.Errorf("it reads as %+v; written was %+v", got, want)
		}
	}
}

func follow(b *testedLog) {
	b.append(prepare(), 0, 1)
	b.append(event("{}"), 1, 2)
	b.answer(reply(1, message.Prepare, "h01"))
	written := false
	got := b.delivered(func(ctx context.Context, deliver func(message.Record)) error {
		return b.Follow(ctx, 0, func(r message.Record) {
			if r.Seq == 3 && !written {
				written = true
				if _, err := b.Append(ctx, event("{}"), 2); err != nil {
					b.Error(err)
				}
			}
			deliver(r)
		})
	}, 4)
	if got != "[1 2 3 4]" {
		b.Errorf("with a record that comes meanwhile %s are delivered", got)
	}
	for from, want := range map[uint64]string{1: "[1 2 3 4]", 3: "[3 4]", 4: "[4]"} {
		got := b.delivered(func(ctx context.Context, deliver func(message.Record)) error { return b.Follow(ctx, from, deliver) }, 4)
		if got != want {
			b.Errorf("from record %d on %s are delivered, not %s", from, got, want)
		}
	}
}

func followCommands(b *testedLog) {
	b.append(prepare(), 0, 1)
	b.answer(reply(1, message.Prepare, "h01"))
	b.append(upgrade("h01", 0), 1, 3)
	b.answer(reply(1, message.Upgrade, "h01"))
	b.append(event("{}"), 3, 5)
	for from, want := range map[uint64]string{0: "[1 3 5]", 2: "[3 5]"} {
		got := b.delivered(func(ctx context.Context, deliver func(message.Record)) error {
			return b.FollowCommands(ctx, from, deliver)
		}, 5)
		if got != want {
			b.Errorf("from record %d on %s are delivered, not %s", from, got, want)
		}
	}
}

// trimmed is a log of four records that begins with the third.
func trimmed(b *testedLog) {
	b.Helper()
	b.append(prepare(), 0, 1)
	b.answer(reply(1, message.Prepare, "h01"))
	b.append(event("{}"), 1, 3)
	b.append(event("{}"), 3, 4)
	if err := b.Trim(b.Context(), 2); err != nil {
		b.Fatal(err)
	}
}

func trim(b *testedLog) {
	trimmed(b)
	b.ends(3, 4)
	// What is trimmed already may be trimmed again.
	if err := b.Trim(b.Context(), 1); err != nil {
		b.Error(err)
	}
	b.append(event("{}"), 4, 5)
	b.ends(3, 5)
	got := b.delivered(func(ctx context.Context, deliver func(message.Record)) error { return b.Follow(ctx, 1, deliver) }, 5)
	if got != "[3 4 5]" {
		b.Errorf("what is followed is %s", got)
	}
}

func trimTooMuch(b *testedLog) {
	b.append(prepare(), 0, 1)
	b.append(event("{}"), 1, 2)
	b.answer(reply(1, message.Prepare, "h01"))
	for _, upTo := range []uint64{2, 3, 9} {
		if err := b.Trim(b.Context(), upTo); err == nil {
			b.Errorf("the log is trimmed up to record %d", upTo)
		}
	}
	b.ends(1, 3)
}

func trimReply(b *testedLog) {
	trimmed(b)
	if err := b.AppendReply(b.Context(), reply(1, message.Prepare, "h01")); err != nil {
		b.Errorf("it gets %v", err)
	}
	b.ends(3, 5)
}

func readTooMuch(b *testedLog) {
	trimmed(b)
	for _, span := range [][2]uint64{{2, 3}, {4, 5}, {9, 9}} {
		if err := b.Read(b.Context(), span[0], span[1], func(message.Record) {}); err == nil {
			b.Errorf("the records %v can be read", span)
		}
	}
}

func identity(b *testedLog) {
	before := b.Identity()
	trimmed(b)
	if after := b.Identity(); before == "" || after != before {
		b.Errorf("it was %q and is %q", before, after)
	}
}
