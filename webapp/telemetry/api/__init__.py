"""REST of logs, trees and series."""
