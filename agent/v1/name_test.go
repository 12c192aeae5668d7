package v1

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
)

// TestNamesAreThoseOfMessages checks that a rollout can name each host and
// label that a worker can have, and no other: this package imports nothing of
// the log, so the rules stand in both.
func TestNamesAreThoseOfMessages(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.String(), rapid.StringMatching(`[-a-zA-Z0-9._/ \n]{0,4}`), rapid.StringMatching(`[a-z.]{60,66}`), rapid.StringMatching(`[a-z.]{250,256}`)).Draw(t, "text")
		if ValidHost(text) != message.ValidHost(text) {
			t.Errorf("%q is a host here: %v, and in messages: %v", text, ValidHost(text), message.ValidHost(text))
		}
		if ValidLabel(text) != message.ValidLabel(text) {
			t.Errorf("%q is a label here: %v, and in messages: %v", text, ValidLabel(text), message.ValidLabel(text))
		}
	})
	if maxLabels != message.MaxLabels {
		t.Errorf("a host may have %d labels, a rollout names %d", message.MaxLabels, maxLabels)
	}
}
