package site

import (
	"context"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/controller"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/gate"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/store"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/report"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// at returns the function that takes the labels of one role; nil when nobody does.
func (o Options) at(role string) func(label string) {
	if o.At == nil {
		return nil
	}
	return func(label string) { o.At(role + " " + label) }
}

// labelled returns the log and the store, with labels around their writes when
// somebody takes them.
func (o Options) labelled(log log.Log, kept *store.Store) (log.Log, controller.Store, gate.Keeper) {
	at := o.at("server")
	if at == nil {
		return log, kept, kept
	}
	return labelledLog{log, at}, labelledStore{kept, at}, labelledKeeper{kept, at}
}

// labelledLog has a label before and after each append, and before each reply that
// it delivers.
type labelledLog struct {
	log.Log
	at func(label string)
}

func (l labelledLog) Append(ctx context.Context, r message.Record, expect uint64) (uint64, error) {
	l.at("before append")
	seq, err := l.Log.Append(ctx, r, expect)
	l.at("after append")
	return seq, err
}

func (l labelledLog) Follow(ctx context.Context, from uint64, deliver func(message.Record)) error {
	return l.Log.Follow(ctx, from, func(r message.Record) {
		if r.Kind == message.ReplyRecord {
			l.at("reply on the log")
		}
		deliver(r)
	})
}

// labelledStore has a label before and after each write of a controller.
type labelledStore struct {
	controller.Store
	at func(label string)
}

func (s labelledStore) PutHost(ctx context.Context, key string, host store.Host) error {
	s.at("before host")
	err := s.Store.PutHost(ctx, key, host)
	s.at("after host")
	// A host is written more than once; whoever waits for some of them needs their names.
	if err == nil {
		s.at("kept host " + host.Name)
	}
	return err
}

func (s labelledStore) PutRun(ctx context.Context, tenant string, r v1.Run, asOf uint64) error {
	s.at("before history")
	defer s.at("after history")
	return s.Store.PutRun(ctx, tenant, r, asOf)
}

// labelledKeeper has a label before and after each write of the gate.
type labelledKeeper struct {
	gate.Keeper
	at func(label string)
}

func (k labelledKeeper) PutReport(ctx context.Context, tenant, key string, r report.Report) error {
	k.at("before report")
	defer k.at("after report")
	return k.Keeper.PutReport(ctx, tenant, key, r)
}

func (k labelledKeeper) PutLease(ctx context.Context, tenant, key string, body []byte, base uint64) (uint64, error) {
	k.at("before lease")
	defer k.at("after lease")
	return k.Keeper.PutLease(ctx, tenant, key, body, base)
}
