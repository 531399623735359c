// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package turn

import "strings"

// show sends what the chat says and the client was not told. What it was told stays: if the chat says something else
// now, the story ends with ErrDiverged. With whole, nothing of what is said grows any more.
func (s *Story) show(whole bool) error {
	from := max(0, len(s.shown)-1)
	if err := s.consistent(from, whole); err != nil {
		return err
	}
	for i := from; i < len(s.said); i++ {
		b := &s.said[i]
		if b.Kind == Call && i >= s.committed {
			return nil
		}
		if err := s.showBlock(i, b); err != nil {
			return err
		}
	}
	if whole {
		return s.seal()
	}
	return nil
}

// consistent compares what was sent, up to a block, with what is said. A new attempt has said less for a while than was
// sent of the one before.
func (s *Story) consistent(from int, whole bool) error {
	if len(s.said) < len(s.shown) {
		if whole {
			return ErrDiverged
		}
		return s.hasShown(len(s.said))
	}
	if err := s.hasShown(from); err != nil {
		return err
	}
	if len(s.shown) > 0 && !s.extends(from, whole) {
		return ErrDiverged
	}
	return nil
}

// extends reports whether the last block that was sent is one that is said, or the beginning of it.
func (s *Story) extends(last int, whole bool) bool {
	told, now := &s.shown[last], &s.said[last]
	if told.Kind != now.Kind || told.ID != now.ID {
		return false
	}
	if len(now.Text) < len(told.Text) {
		return !whole && last >= s.committed && strings.HasPrefix(told.Text, now.Text)
	}
	return strings.HasPrefix(now.Text, told.Text) && (len(now.Text) == len(told.Text) || !s.sealed)
}

// hasShown compares the first blocks, of which all but the last one said are whole.
func (s *Story) hasShown(n int) error {
	for i := range n {
		told, now := &s.shown[i], &s.said[i]
		same := told.Text == now.Text
		if i == len(s.said)-1 && i >= s.committed {
			same = strings.HasPrefix(told.Text, now.Text)
		}
		if told.Kind != now.Kind || told.ID != now.ID || !same {
			return ErrDiverged
		}
	}
	return nil
}

// showBlock sends what is new of a block.
func (s *Story) showBlock(i int, b *Block) error {
	if i == len(s.shown) {
		if err := s.seal(); err != nil {
			return err
		}
		opened := Block{Kind: b.Kind, ID: b.ID, Name: b.Name, Step: b.Step}
		s.shown, s.sealed = append(s.shown, opened), false
		if err := s.Send(Event{Kind: Opened, Block: &s.shown[i], Index: i}); err != nil {
			return err
		}
	}
	told := &s.shown[i]
	if len(b.Text) <= len(told.Text) {
		return nil
	}
	added := b.Text[len(told.Text):]
	if s.bytes += len(added); s.bytes > MaxAnswer {
		return ErrTooLong
	}
	told.Text = b.Text
	return s.Send(Event{Kind: Grown, Block: told, Index: i, Text: added})
}

// seal closes the block that is open.
func (s *Story) seal() error {
	if len(s.shown) == 0 || s.sealed {
		return nil
	}
	s.sealed = true
	i := len(s.shown) - 1
	return s.Send(Event{Kind: Closed, Block: &s.shown[i], Index: i})
}
