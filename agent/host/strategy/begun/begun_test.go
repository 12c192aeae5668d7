package begun_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy/begun"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// TestBegun checks that what was begun is known until it is cleared, and that a file which
// nobody can read explains nothing.
func TestBegun(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "state")
	if left := begun.Read(dir); left != nil || begun.Covers(left, nil) {
		t.Errorf("nothing was begun, and %v is", left)
	}
	changes := []message.Change{{Name: "a", From: "1", To: "2"}, {Name: "b", To: "2"}}
	if err := begun.Write(dir, changes); err != nil {
		t.Fatal(err)
	}
	left := begun.Read(dir)
	if !slices.Equal(left, changes) || begun.Covers(left, nil) || !begun.Covers(left, []string{"b", "a"}) || begun.Covers(left, []string{"a", "c"}) {
		t.Errorf("begun is %v", left)
	}
	if of := begun.Of(left, []string{"b"}); !slices.Equal(of, changes[1:]) {
		t.Errorf("of b it has %v", of)
	}
	if err := os.WriteFile(filepath.Join(dir, "begun.json"), []byte(`[{"name":"a"`), 0o600); err != nil {
		t.Fatal(err)
	}
	if left := begun.Read(dir); begun.Covers(left, []string{"a"}) {
		t.Errorf("half of a file says %v", left)
	}
	for range 2 {
		if err := begun.Clear(dir); err != nil || begun.Read(dir) != nil {
			t.Errorf("it is not cleared: %v", err)
		}
	}
}
