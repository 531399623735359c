// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package prompt

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"image"
	_ "image/gif" // Their sizes are read.
	_ "image/jpeg"
	_ "image/png"
	"strings"
)

// limit omits the images that are too large: one of them would have every request of the chat refused.
func (s ImageSides) limit(files map[FileKey]File) {
	if s.Most == 0 {
		return
	}
	sides := map[FileKey]int{}
	for key, f := range files {
		if kind := kindOf(f.Data); strings.HasPrefix(kind, "image/") {
			sides[key] = longestSide(kind, f.Data)
		}
	}
	most, among := s.Most, ""
	if len(sides) > s.Few {
		most, among = s.MostOfMany, fmt.Sprintf(" among more than %d images", s.Few)
	}
	for key, side := range sides {
		if side > most {
			files[key] = File{Problem: fmt.Sprintf(
				"it has a side of %d pixels, and the provider of the model takes at most %d%s", side, most, among)}
		}
	}
}

// longestSide is the longer side of an image; 0 if its size cannot be read.
func longestSide(kind string, data []byte) int {
	if kind == "image/webp" {
		return longestSideOfWebP(data)
	}
	size, _, err := image.DecodeConfig(bytes.NewReader(data))
	if err != nil {
		return 0
	}
	return max(size.Width, size.Height)
}

// longestSideOfWebP reads the header of the first chunk: https://developers.google.com/speed/webp/docs/riff_container.
func longestSideOfWebP(data []byte) int {
	const header = 30 // As far as the sizes of all kinds.
	if len(data) < header {
		return 0
	}
	two := func(at int) int { return int(binary.LittleEndian.Uint16(data[at:])) }
	switch string(data[12:16]) {
	case "VP8 ": // 14 bits each.
		return max(two(26)&0x3fff, two(28)&0x3fff)
	case "VP8L": // 14 bits each, of one less.
		bits := binary.LittleEndian.Uint32(data[21:])
		return max(int(bits&0x3fff), int(bits>>14&0x3fff)) + 1
	case "VP8X": // 24 bits each, of one less.
		return max(two(24)|int(data[26])<<16, two(27)|int(data[29])<<16) + 1
	}
	return 0
}
