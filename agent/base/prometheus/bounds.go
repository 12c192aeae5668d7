package prometheus

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/text"
)

// Bounds say what a result has to be: with neither bound it has to be empty, else each of its
// series, of which there is at least one, has to lie within them.
type Bounds struct {
	// Below and Above are the numbers that no value may reach; nil for none.
	Below, Above *float64
}

// Judge returns why a result is not as it should be; nil when it is. A value that is no number is
// within no bounds.
func (b Bounds) Judge(r Result) error {
	if b.Below == nil && b.Above == nil {
		return b.judgeEmpty(r)
	}
	if len(r.Series) == 0 {
		return errors.New("the query returned nothing, and so no number to compare")
	}
	for _, s := range r.Series {
		switch {
		case b.Below != nil && !(s.Value < *b.Below):
			return fmt.Errorf("%s, which is not below %s%s", s, number(*b.Below), among(r))
		case b.Above != nil && !(s.Value > *b.Above):
			return fmt.Errorf("%s, which is not above %s%s", s, number(*b.Above), among(r))
		}
	}
	return nil
}

func (Bounds) judgeEmpty(r Result) error {
	switch {
	case r.Scalar:
		return fmt.Errorf("the query returned the number %s, which is never nothing; give below or above, or use a query that returns series", r.Series[0])
	case len(r.Series) > 0:
		return fmt.Errorf("the query returned %s, and should return nothing: %s%s", text.Count(len(r.Series), "series", "series"), r.Series[0], rest(len(r.Series)-1))
	}
	return nil
}

// among says of how many series a result is, if there is more than one.
func among(r Result) string {
	if len(r.Series) < 2 {
		return ""
	}
	return fmt.Sprintf(" (of %d series)", len(r.Series))
}

func rest(more int) string {
	if more == 0 {
		return ""
	}
	return fmt.Sprintf(" and %d more", more)
}

func number(n float64) string { return strconv.FormatFloat(n, 'g', -1, 64) }
