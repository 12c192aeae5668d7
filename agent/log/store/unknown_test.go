package store

import (
	"errors"
	"fmt"
	"testing"

	"github.com/nats-io/nats.go/jetstream"
)

// TestWriteUnderWay checks that a write which is refused because another one is
// under way is not called a conflict: the other one may fail, and then the
// revision was right. nats.go says the same of it as of a key that is there.
func TestWriteUnderWay(t *testing.T) {
	t.Parallel()
	underWay, wrong := &jetstream.APIError{ErrorCode: 10164}, &jetstream.APIError{ErrorCode: 10071}
	for _, err := range []error{underWay, fmt.Errorf("%w: %w", underWay, jetstream.ErrKeyExists)} {
		if got := translate(err); !errors.Is(got, ErrUnknown) || errors.Is(got, ErrConflict) {
			t.Errorf("%v becomes %v", err, got)
		}
	}
	for _, err := range []error{wrong, jetstream.ErrKeyExists} {
		if got := translate(err); !errors.Is(got, ErrConflict) || errors.Is(got, ErrUnknown) {
			t.Errorf("%v becomes %v", err, got)
		}
	}
}
