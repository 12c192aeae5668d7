package apt

import (
	"math"
	"strconv"
	"strings"
)

// statusLine is a line that apt writes to APT::Status-Fd.
type statusLine struct {
	// kind is "dlstatus", "pmstatus", "pmerror" or "pmconffile".
	kind string
	// of is the package, or the number of a download.
	of      string
	percent int
	text    string
}

// parseStatusLine reads a line such as
// "pmstatus:libc6:amd64:20.0000:Unpacking libc6 (amd64)": the name may have colons,
// and so may the text, so the percentage tells them apart.
func parseStatusLine(line string) (statusLine, bool) {
	kind, rest, _ := strings.Cut(strings.TrimRight(line, "\r\n"), ":")
	switch kind {
	case "dlstatus", "pmstatus", "pmerror", "pmconffile":
	default:
		return statusLine{}, false
	}
	fields := strings.Split(rest, ":")
	for i := 1; i < len(fields); i++ {
		percent, err := strconv.ParseFloat(fields[i], 64)
		if err != nil || math.IsNaN(percent) || !strings.Contains(fields[i], ".") {
			continue
		}
		return statusLine{
			kind: kind, of: strings.Join(fields[:i], ":"), percent: int(min(max(percent, 0), 100)),
			text: strings.Join(fields[i+1:], ":"),
		}, true
	}
	return statusLine{}, false
}
