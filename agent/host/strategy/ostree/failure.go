package ostree

import (
	"regexp"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/text"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// reasons are the words by which what a tool prints is classed. The first that match
// count.
var reasons = []struct {
	words func() *regexp.Regexp
	class message.Class
}{
	{text.Pattern(`(?i)min-free-space|no space left`), message.Space},
	{text.Pattern(`(?i)signature|gpg|public key|not signed|corrupted|invalid checksum`), message.Artifact},
	{text.Pattern(`(?i)no such branch|no such ref|not found in|HTTP 404|404 not found|manifest unknown`), message.Artifact},
	{text.Pattern(`(?i)\block(ing|ed)?\b|temporarily unavailable|transaction in progress|is busy`), message.Lock},
	{text.Pattern(`(?i)certificate|SSL|TLS|HTTP 4\d\d|unauthorized|forbidden`), message.Repository},
	{text.Pattern(`(?i)HTTP 5\d\d|resolve host|name resolution|connect|timed? ?out|unreachable|reset by peer|transfer closed|end of file|EOF`), message.Transient},
}

// classOf returns the class of what a tool prints when it fails, or otherwise.
func classOf(said string, otherwise message.Class) message.Class {
	for _, r := range reasons {
		if r.words().MatchString(said) {
			return r.class
		}
	}
	return otherwise
}
