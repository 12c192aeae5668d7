package sysupdate

import (
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy/program"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy/remedy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// causes are what systemd-sysupdate and the programs that it runs print about failures.
var causes = program.Causes{
	program.Prints(message.Space, `(?i)no space left on device|disk quota exceeded|too large for|not enough (disk )?space`, remedy.Room),
	program.Prints(message.Artifact, `(?i)signature|gpg|SHA256 (check|hash)|checksum|hash (mismatch|doesn't match)|HTTP (error )?(404|410)|(error|code):? 404|is not available, refusing|Update '.*' not found`, ""),
	program.Prints(message.Lock, `(?i)device or resource busy|resource temporarily unavailable`, ""),
	program.Prints(message.Transient, `(?i)could ?n[o']t (resolve|connect)|failed to connect|timed? ?out|connection (refused|reset)|network is unreachable|name resolution|HTTP (error )?5\d\d|code:? 5\d\d`, remedy.Network),
	program.Prints(message.Repository, `(?i)certificate|SSL|TLS|HTTP (error )?4\d\d|code:? 4\d\d`, ""),
}
