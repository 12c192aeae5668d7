package strategy

import "errors"

// ErrNoRollback is returned by Rollback where there is nothing to undo with.
var ErrNoRollback = errors.New("this strategy has no rollback")
