package jetstream

import (
	"context"
	"fmt"
	"testing"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// TestTrim checks that a log that was trimmed begins later and is written and
// followed as before, and that its newest command stays.
func TestTrim(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	if first, err := s.log.First(t.Context()); err != nil || first != 1 {
		t.Fatalf("an empty log begins at %d, %v", first, err)
	}
	var last uint64
	for _, r := range []message.Record{prepare("h01"), event("1"), event("2"), event("3")} {
		seq, err := s.log.Append(t.Context(), r, last)
		if err != nil {
			t.Fatal(err)
		}
		last = seq
	}
	if err := s.log.Trim(t.Context(), last); err == nil {
		t.Fatal("the newest command can be removed")
	}
	if err := s.log.Trim(t.Context(), 2); err != nil {
		t.Fatal(err)
	}
	if first, err := s.log.First(t.Context()); err != nil || first != 3 {
		t.Errorf("the log begins at %d, %v", first, err)
	}
	if _, err := s.log.Append(t.Context(), event("4"), last); err != nil {
		t.Errorf("the writer is refused: %v", err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var followed []uint64
	_ = s.log.Follow(ctx, 1, func(r message.Record) {
		if followed = append(followed, r.Seq); r.Seq == 5 {
			stop()
		}
	})
	if fmt.Sprint(followed) != "[3 4 5]" {
		t.Errorf("what is followed is %v", followed)
	}
	again, err := Open(t.Context(), s.agent, "acme")
	if err != nil {
		t.Fatal(err)
	}
	if first, err := again.First(t.Context()); err != nil || first != 3 {
		t.Errorf("opened again it begins at %d, %v", first, err)
	}
}
