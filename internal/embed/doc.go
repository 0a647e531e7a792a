// Package embed is the contract of embedders. Providers are sibling folders.
package embed
