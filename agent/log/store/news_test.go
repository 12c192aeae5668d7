package store_test

import (
	"testing"

	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// TestDamagedNewsAreLeftOut checks that damaged news do not keep the others from being read.
func TestDamagedNewsAreLeftOut(t *testing.T) {
	t.Parallel()
	s, nc := openWith(t)
	put := func(id string) {
		t.Helper()
		if _, err := s.PutNews(t.Context(), "acme", v1.News{ID: id, Type: v1.NewsRunOpened}, 4); err != nil {
			t.Fatal(err)
		}
	}
	put("msg_a")
	damaged := last(t, nc, "osu-news.acme.msg_a")
	damaged.Subject, damaged.Data = "osu-news.acme.msg_b", []byte("{")
	publish(t, nc, damaged)
	put("msg_c")
	all, err := s.News(t.Context(), "acme")
	if err != nil || len(all) != 2 || all[0].ID != "msg_a" || all[1].ID != "msg_c" || all[1].Number != 3 {
		t.Errorf("kept are %+v, %v", all, err)
	}
}
