"""REST of logs, trees and metrics."""
