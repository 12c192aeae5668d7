package sim

import (
	"context"
	"errors"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/sim/oracle"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/store"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/v1"
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
	w := s.w
	w.mu.Lock() // Before that of the store: the oracle judges them in their order.
	defer w.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range s.news {
		if k.ID != told.ID {
			continue
		}
		w.count("news kept twice")
		if k.Type != told.Type || !k.Timestamp.Equal(told.Timestamp) || k.Data.Run != told.Data.Run || k.Data.Host != told.Data.Host {
			w.violated("news %s are told as %+v, and were told as %+v", told.ID, told, k.News)
		}
		return k.Number
	}
	told.Number = uint64(len(s.news)) + 1
	s.news = append(s.news, store.KeptNews{News: told, AsOf: asOf})
	w.note("news %d, as of record %d: %s: %s", told.Number, asOf, told.Type, told.Data.Text)
	w.oracle.News(judged(told, asOf))
	return told.Number
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
func (s siteStore) News(ctx context.Context, _ string) ([]store.KeptNews, error) {
	if err := s.read(ctx); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]store.KeptNews(nil), s.news...), nil
}
