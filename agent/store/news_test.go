package store_test

import (
	"fmt"
	"testing"

	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/v1"
)

// TestNewsAreKeptOnce checks that the same news have one number however often they are
// written, that they are bounded, and that each tenant has its own.
func TestNewsAreKeptOnce(t *testing.T) {
	t.Parallel()
	s, nc := openWith(t)
	put := func(id string, asOf uint64) uint64 {
		number, err := s.PutNews(t.Context(), "acme", v1.News{ID: id, Type: v1.NewsRunOpened}, asOf)
		if err != nil {
			t.Fatal(err)
		}
		return number
	}
	if first, again, second := put("msg_a", 4), put("msg_a", 9), put("msg_b", 5); first != 1 || again != 1 || second != 2 {
		t.Errorf("the numbers are %d, %d and %d", first, again, second)
	}
	all, err := s.News(t.Context(), "acme")
	if err != nil || len(all) != 2 || all[0].ID != "msg_a" || all[0].AsOf != 4 || all[0].Number != 1 || all[1].Number != 2 {
		t.Errorf("kept are %+v, %v", all, err)
	}
	if others, err := s.News(t.Context(), "other"); len(others) != 0 || err != nil {
		t.Errorf("the other tenant has %+v, %v", others, err)
	}
	damaged := last(t, nc, "osu-news.acme.msg_b")
	damaged.Subject, damaged.Data = "osu-news.acme.msg_c", []byte("{")
	publish(t, nc, damaged)
	for i := range v1.MaxNews {
		put(fmt.Sprint("msg_", i), 10)
	}
	all, err = s.News(t.Context(), "acme")
	if err != nil || len(all) != v1.MaxNews || all[0].ID != "msg_0" {
		t.Errorf("after %d more, %d are kept from %q, %v", v1.MaxNews, len(all), all[0].ID, err)
	}
}
