package gate

import "context"

// release returns the text of the release that a run is pinned to, to a member of it. The text is
// in the event that has opened the run, so that it stays what it was.
func (g *Gate) release(ctx context.Context, host, run string) Response {
	switch o, no := g.openedFor(ctx, host, run); {
	case o == nil:
		return no
	case o.release == nil:
		return refused("run %s has no release", run)
	default:
		return Response{Body: o.release}
	}
}
