package v1

import (
	"mime"
	"strconv"
	"strings"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/document"
)

// offers are the content types of an answer; of those that a client likes
// equally, the first is sent.
var offers = [...]string{document.JSON, document.YAML, document.XYAML, document.TextYAML}

// preferred returns the content type that an Accept header prefers: the one of
// the highest quality (RFC 9110 12.5.1), and among equals one that is named over
// one that a wildcard covers. A client that wants none of them gets JSON, which
// RFC 9110 allows and which tells it more than 406 would.
func preferred(accept string) string {
	best, most := document.JSON, rank{}
	for _, offer := range offers {
		if r := rankOf(offer, accept); r.better(most) {
			best, most = offer, r
		}
	}
	return best
}

// rank is how much a client likes a content type.
type rank struct {
	quality float64
	// precision is 3 when the type is named, 2 for "application/*", 1 for "*/*".
	precision int
}

func (r rank) better(than rank) bool {
	if r.quality == than.quality {
		return r.quality > 0 && r.precision > than.precision
	}
	return r.quality > than.quality
}

// rankOf returns the rank that the most precise range of an Accept header gives
// to a content type. A range that cannot be read says nothing.
func rankOf(offer, accept string) rank {
	var found rank
	for part := range strings.SplitSeq(accept, ",") {
		media, parameters, err := mime.ParseMediaType(part)
		if err != nil {
			continue
		}
		if p := precision(media, offer); p > found.precision {
			found = rank{quality: quality(parameters["q"]), precision: p}
		}
	}
	return found
}

func precision(media, offer string) int {
	folder, _, _ := strings.Cut(offer, "/")
	switch media {
	case offer:
		return 3
	case folder + "/*":
		return 2
	case "*/*":
		return 1
	}
	return 0
}

// quality reads a q parameter; an absent one is 1, and so is one that cannot be
// read, since the client named the type.
func quality(text string) float64 {
	q, err := strconv.ParseFloat(text, 64)
	if err != nil || !(0 <= q && q <= 1) {
		return 1
	}
	return q
}
