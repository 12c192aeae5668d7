package sim

import (
	"context"
	"errors"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/store"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/oracle"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

var errNews = errors.New("sim: the news cannot be kept")

// PutNews implements controller.NewsStore. The news may be kept although the write fails.
func (s siteStore) PutNews(_ context.Context, _ string, told v1.News, asOf uint64) (uint64, error) {
	switch {
	case s.p.dead():
		return 0, errDead
	case s.w.fault("news: write fails", s.p.name):
		return 0, errNews
	}
	number := s.keepNews(told, asOf)
	if s.w.fault("news: ack lost", s.p.name) {
		return 0, errNews
	}
	return number, nil
}

// keepNews keeps news once, and has the oracle judge those that are new.
func (s siteStore) keepNews(told v1.News, asOf uint64) uint64 {
	w, ctx := s.w, context.Background()
	w.mu.Lock() // The oracle judges the news in their order.
	defer w.mu.Unlock()
	before, err := s.Store.News(ctx, tenant)
	w.must(err)
	number, err := s.Store.PutNews(ctx, tenant, told, asOf)
	w.must(err)
	for _, k := range before {
		if k.ID != told.ID {
			continue
		}
		w.count("news kept twice")
		// Since when a host is overdue goes by when its controller last heard of it.
		isSame := k.Timestamp.Equal(told.Timestamp) || told.Type == v1.NewsRunOverdue
		if k.Type != told.Type || !isSame || k.Data.Run != told.Data.Run || k.Data.Host != told.Data.Host {
			w.violated("news %s are told as %+v, and were told as %+v", told.ID, told, k.News)
		}
		return number
	}
	w.note("news %d, as of record %d: %s: %s", number, asOf, told.Type, told.Data.Text)
	w.oracle.News(judged(told, asOf))
	return number
}

// judged returns news as the oracle sees them.
func judged(n v1.News, asOf uint64) oracle.Told {
	t := oracle.Told{ID: n.ID, Type: n.Type, Run: n.Data.Run, About: n.Data.Stage, AsOf: asOf}
	switch {
	case n.Data.Host != "":
		t.About = n.Data.Host
	case n.Data.Window != nil:
		t.About = n.Data.Window.UTC().Format(time.RFC3339)
	}
	if n.Data.WaitingFor != nil {
		t.What = n.Data.WaitingFor.What
	}
	return t
}

// News implements controller.NewsStore.
func (s siteStore) News(ctx context.Context, tenant string) ([]store.KeptNews, error) {
	if err := s.read(ctx); err != nil {
		return nil, err
	}
	return s.Store.News(ctx, tenant)
}
